package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"perigee/engine"
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
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			return exitUsage
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
	a.tell(e.err)
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

// tell writes an error: lines for people, an object for machines.
func (a *app) tell(err error) {
	code, message := client.CodeOf(err), a.remote.explain(err)
	if !a.print.JSON {
		for line := range strings.SplitSeq(message, "\n") {
			a.print.Warn("perigee: %s", line)
		}
		return
	}
	text, _ := json.Marshal(struct { // two texts: it cannot fail
		Code    string `json:"code,omitempty"`
		Message string `json:"message"`
	}{code, message})
	a.print.Warn("%s", text)
}

// explain makes an error's text of what a person can do about it.
func (r *remote) explain(err error) string {
	var refused *client.Error
	var own *engine.Error
	switch {
	case errors.As(err, &refused) && refused.Code == string(engine.Unauthenticated):
		return refused.Error() + " (--token-file FILE or PERIGEE_TOKEN)"
	case errors.As(err, &own):
		if own.Code == engine.Unavailable && own.Cause != nil {
			return own.Cause.Error()
		}
		return own.Message
	case client.Temporary(err) && client.CodeOf(err) == "":
		return fmt.Sprintf("no server answers at %s (%s); start one with `perigee dev`, or name yours with --server or PERIGEE_URL", r.url, cause(err))
	}
	return err.Error()
}

// cause is the innermost reason for which a connection failed.
func cause(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}
