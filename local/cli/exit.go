package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"perigee/engine"
	"perigee/local/console"
	"perigee/sdk/go/client"
	"perigee/store"
)

// Exit codes. docs/cli.md and `perigee --help` list them.
const (
	exitOK          = 0
	exitRefused     = 1 // the server said no, or faults or differences were found
	exitUsage       = 2 // a wrong command line, or input that cannot be taken
	exitFailed      = 3 // the execution that was waited for failed
	exitCancelled   = 4
	exitTimedOut    = 5
	exitUnavailable = 6 // no server or database answers, or it cannot be used
	exitInterrupted = 130
)

const exitCodes = `Exit codes:
  0    done; with --wait: the execution completed
  1    refused by the server, or faults or differences were found
  2    a wrong command line, or input that cannot be taken
  3    with --wait: the execution failed
  4    with --wait: it was cancelled
  5    with --wait: it timed out
  6    the server or the database cannot be reached or used
  130  interrupted`

// exit is an error with the exit code that it ends the process with.
type exit struct {
	code int
	err  error // nil: everything has been said
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage is an error of the command line or of what was given to it.
func usage(format string, args ...any) error {
	return &exit{exitUsage, fmt.Errorf(format, args...)}
}

// unusable is an error of the database or of the server's surroundings.
func unusable(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUnavailable, err}
}

// ran marks what a command returned, to tell it from cobra's own complaints
// about the command line.
func ran(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var e *exit
		if err == nil || errors.As(err, &e) {
			return err
		}
		return &exit{codeOf(err), err}
	}
}

// codeOf is the exit code of an error that names none.
func codeOf(err error) int {
	var refused *client.Error
	var own *engine.Error
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &own) && own.Code == engine.Unavailable, errors.Is(err, store.ErrSchema), errors.Is(err, store.ErrUnavailable), client.Temporary(err):
		return exitUnavailable
	case errors.As(err, &own) && own.Code == engine.InvalidRequest:
		return exitUsage
	case errors.As(err, &refused):
		switch refused.Status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			return exitUsage
		case http.StatusUnprocessableEntity:
			if refused.Code != string(engine.QueryFailed) { // the fault is the definition's
				return exitUsage
			}
		}
	}
	return exitRefused
}

// finish tells the error and gives the exit code.
func (a *app) finish(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{exitUsage, fmt.Errorf("%s; see `perigee --help`", onOneLine(err.Error()))}
	}
	if e.err == nil {
		return e.code
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	a.tell(e)
	return e.code
}

// onOneLine takes the lines in which cobra suggests commands together.
func onOneLine(text string) string {
	said, suggested, _ := strings.Cut(text, "Did you mean this?")
	said = strings.TrimSpace(said)
	if words := strings.Fields(suggested); len(words) > 0 {
		said += ": did you mean " + strings.Join(words, " or ") + "?"
	}
	return said
}

// complaint is an error as it is told: lines for people, an object for machines.
type complaint struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Codes of complaints that no server made. docs/cli.md lists them.
const (
	codeUsage       = "USAGE"
	codeUnreachable = "UNREACHABLE"
	codeUnusable    = "UNUSABLE"
	codeFailed      = "FAILED"
)

// mostFaults is how many faults of one input a person is shown.
const mostFaults = 20

// tell writes an error.
func (a *app) tell(e *exit) {
	c := a.remote.complaint(e)
	if a.print.JSON {
		text, _ := client.Encode(c) // texts, and what a server sent as JSON
		a.print.Warn("%s", text)
		return
	}
	text := c.Message
	var refused *client.Error
	if errors.As(e.err, &refused) {
		text = c.Code + ": " + text
	}
	for line := range strings.SplitSeq(text, "\n") {
		a.print.Warn("perigee: %s", line)
	}
	a.tellFaults(client.Faults(e.err))
}

// tellFaults lists what is wrong with an input beside the first fault, which the
// message has.
func (a *app) tellFaults(faults []client.Fault) {
	for i, f := range faults {
		switch {
		case i == 0:
			continue
		case i == mostFaults:
			a.print.Warn("perigee:   and %d more, which --json shows", len(faults)-i)
			return
		}
		at := f.Path
		if at == "" {
			at = "the top"
		}
		a.print.Warn("perigee:   at %s: %s", console.Printable(at), console.Printable(f.Message))
	}
}

// complaint makes of an error what a person can do about it, and by which code a
// program can go.
func (r *remote) complaint(e *exit) complaint {
	var refused *client.Error
	var own *engine.Error
	switch err := e.err; {
	case errors.As(err, &refused):
		c := complaint{refused.Code, strings.TrimPrefix(err.Error(), refused.Code+": "), refused.Details}
		if refused.Code == string(engine.Unauthenticated) {
			c.Message += " (--token-file FILE or PERIGEE_TOKEN)"
		}
		return c
	case errors.As(err, &own):
		c := complaint{Code: string(own.Code), Message: own.Message}
		if own.Code == engine.Unavailable && own.Cause != nil {
			c.Message = own.Cause.Error()
		}
		return c
	case client.Temporary(err):
		return complaint{Code: codeUnreachable, Message: fmt.Sprintf(
			"no server answers at %s (%s); start one with `perigee dev`, or name yours with --server or PERIGEE_URL", r.url, cause(err))}
	}
	codes := map[int]string{exitUsage: codeUsage, exitUnavailable: codeUnusable}
	return complaint{Code: cmp.Or(codes[e.code], codeFailed), Message: e.err.Error()}
}

// cause is the innermost reason for which a connection failed.
func cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}
