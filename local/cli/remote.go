package cli

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perigee/sdk/go/client"
)

const (
	defaultServer = "http://127.0.0.1:7474"
	// retryFor is short: a person waits.
	retryFor = 2 * time.Second
	// followFor is how long the server may be away while something is followed.
	followFor = 5 * time.Minute
)

// remote is the server that commands speak to.
type remote struct {
	server, tokenFile string // flags
	url               string // of the server that was called
}

func (r *remote) flags(fs *pflag.FlagSet) {
	fs.StringVar(&r.server, "server", "", "URL of the server (PERIGEE_URL; default "+defaultServer+")")
	fs.StringVar(&r.tokenFile, "token-file", "", "file with the API token (or PERIGEE_TOKEN holds it)")
}

// client makes a client of the server that flags and environment name.
func (a *app) client() (*client.Client, error) {
	r := &a.remote
	switch {
	case r.server != "":
		r.url = r.server
	case a.env("PERIGEE_URL") != "":
		r.url = a.env("PERIGEE_URL")
	default:
		r.url = defaultServer
	}
	token := a.env("PERIGEE_TOKEN")
	if r.tokenFile != "" {
		text, err := os.ReadFile(r.tokenFile)
		if err != nil {
			return nil, usage("--token-file: %w", err)
		}
		if token = strings.TrimSpace(string(text)); token == "" {
			return nil, usage("--token-file: %s is empty; expected the token that `perigee token create` printed", r.tokenFile)
		}
	}
	c, err := client.New(r.url, client.Options{Token: token, UserAgent: "perigee-cli", RetryFor: retryFor, OnRetry: a.away()})
	if err != nil {
		return nil, usage("%w", err)
	}
	return c, nil
}

// away tells whoever waits, once, that the server does not answer.
func (a *app) away() func(error, time.Duration) {
	var once sync.Once
	return func(error, time.Duration) {
		once.Do(func() { a.print.Note("The server does not answer; trying again …") })
	}
}

// following is a client for waiting: it bears a server that is away for a while.
func (a *app) following() (*client.Client, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	return c.WithRetryFor(followFor), nil
}

// completeWith offers words for an argument at a place of the command line.
// Without a server there are none.
func (a *app) completeWith(place int, words func(cmd *cobra.Command, c *client.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != place {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := words(cmd, c.WithRetryFor(client.NoRetry))
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeExecutions offers the newest executions.
func (a *app) completeExecutions() cobra.CompletionFunc {
	return a.completeWith(0, func(cmd *cobra.Command, c *client.Client) ([]string, error) {
		page, err := c.List(cmd.Context(), client.ListRequest{})
		var ids []string
		for _, e := range page.Executions {
			ids = append(ids, cobra.CompletionWithDesc(e.ExecutionID, e.Workflow+" "+string(e.Status)))
		}
		return ids, err
	})
}

// completeWorkflows offers names of workflows, or name@version.
func (a *app) completeWorkflows(versions bool) cobra.CompletionFunc {
	return a.completeWith(0, func(cmd *cobra.Command, c *client.Client) ([]string, error) {
		list, err := c.Definitions(cmd.Context())
		var names []string
		for _, d := range list {
			name := d.Name
			if versions {
				name += "@" + d.Version
			}
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		return names, err
	})
}
