package logs_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/google/go-cmp/cmp"

	"perigee/engine/traceid"
	"perigee/infra/config"
	"perigee/infra/logs"
)

func TestLogger_SaysOfWhichCallAndTraceALineIs(t *testing.T) {
	var log bytes.Buffer
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "r-1"})
	ctx = logs.With(ctx, slog.String("function", "api"))
	logs.New(&log, config.Settings{LogFormat: config.LogJSON}).InfoContext(ctx, "done", "execution_id", "o-1")
	var got map[string]any
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	at, _ := got["timestamp"].(string)
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil || at[len(at)-1] != 'Z' {
		t.Errorf("timestamp %q: %v", at, err)
	}
	delete(got, "timestamp")
	want := map[string]any{
		"level": "INFO", "message": "done", "execution_id": "o-1", "trace_id": traceid.Trace("o-1"), "function": "api", "aws_request_id": "r-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLogger_KeepsToItsLevel(t *testing.T) {
	var log bytes.Buffer
	logger := logs.New(&log, config.Settings{LogFormat: config.LogText, LogLevel: slog.LevelWarn})
	logger.Info("quiet")
	if log.Len() > 0 {
		t.Errorf("got %s", log.String())
	}
}
