package logs

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"perigee/engine/traceid"
	"perigee/infra/config"
)

// New makes a logger that writes to w as settings say.
func New(w io.Writer, s config.Settings) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == config.LogText {
		return slog.New(handler{slog.NewTextHandler(w, options)})
	}
	options.ReplaceAttr = named
	return slog.New(handler{slog.NewJSONHandler(w, options)})
}

// named gives the fixed members the names that Lambda knows.
func named(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "timestamp"
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.MessageKey:
		a.Key = "message"
	}
	return a
}

type attrsKey struct{}

// With returns a context whose records carry attrs.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	before, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return context.WithValue(ctx, attrsKey{}, slices.Concat(before, attrs))
}

// handler adds what the context tells to each record.
type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	var trace string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "execution_id" {
			trace = traceid.Trace(a.Value.String())
		}
		return true
	})
	if trace != "" {
		r.AddAttrs(slog.String("trace_id", trace))
	}
	if attrs, ok := ctx.Value(attrsKey{}).([]slog.Attr); ok {
		r.AddAttrs(attrs...)
	}
	if call, ok := lambdacontext.FromContext(ctx); ok {
		r.AddAttrs(slog.String("aws_request_id", call.AwsRequestID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
