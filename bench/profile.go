package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// profile is `bench profile`: what the server spends its time and its memory on
// while a scenario runs again and again.
func profile(ctx context.Context, args []string) error {
	var o options
	fs := flags("bench profile", &o)
	store := fs.String("store", "postgres", "sqlite or postgres")
	scenario := fs.String("scenario", "S1", "S1, S2, S3, S4, wide or writers")
	seconds := fs.Int("seconds", 20, "how long")
	out := fs.String("out", ".build/profile", "folder for the profiles")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	s, err := setUp(ctx, o)
	if err != nil {
		return err
	}
	defer s.tearDown()
	d, done, err := s.deploy(ctx, *store, true)
	if err != nil {
		return err
	}
	defer done()
	run, ok := map[string]func(context.Context) error{
		"S1": d.throughput, "S2": d.latency, "S3": d.fanOut, "S4": d.long, "wide": d.wide, "writers": d.writers,
	}[*scenario]
	if !ok {
		return fmt.Errorf("-scenario: %q is none of S1, S2, S3, S4, wide and writers", *scenario)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for running.Err() == nil {
			if err := run(running); err != nil && running.Err() == nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	err = d.fetchProfiles(ctx, *out, *store+"-"+*scenario, time.Duration(*seconds)*time.Second)
	stop()
	return errors.Join(err, <-ended, s.sheet.print(io.Discard, os.Stderr))
}

// fetchProfiles writes a CPU profile and what was allocated meanwhile, and
// prints the top of both.
func (d *deployment) fetchProfiles(ctx context.Context, folder, name string, last time.Duration) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, p := range []struct{ kind, query string }{
		{"cpu", fmt.Sprintf("/debug/pprof/profile?seconds=%.0f", last.Seconds())},
		{"allocs", fmt.Sprintf("/debug/pprof/allocs?seconds=%.0f", min(last, 10*time.Second).Seconds())},
	} {
		path := filepath.Join(folder, name+"-"+p.kind+".pprof")
		if err := fetch(ctx, d.server.debug+p.query, path); err != nil {
			return fmt.Errorf("%s profile: %w", p.kind, err)
		}
		top := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=70", path)
		top.Stdout, top.Stderr = os.Stdout, os.Stderr
		if err := top.Run(); err != nil {
			return err
		}
	}
	return nil
}

func fetch(ctx context.Context, url, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}
