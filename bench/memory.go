package main

import (
	"context"
	"fmt"
)

// memory looks at what `perigee dev` keeps of executions that have ended.
func (s *suite) memory(ctx context.Context) error {
	s.say("memory of the server after %d executions", s.count(10_000))
	d, done, err := s.deploy(ctx, "sqlite", false)
	if err != nil {
		return err
	}
	defer done()
	for _, name := range []string{devEarlier, devResident} {
		if _, err := d.each(ctx, sequentialName(1), s.count(5000), 32); err != nil {
			return err
		}
		resident, err := d.server.residentMiB()
		if err != nil {
			return fmt.Errorf("memory of the server: %w", err)
		}
		s.sheet.add(name, d.store, resident, "MiB")
	}
	return nil
}
