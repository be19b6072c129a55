package config_test

import (
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"perigee/engine"
	"perigee/infra/config"
)

var update = flag.Bool("update", false, "write the table of settings into docs/operations.md")

// from is a Source of a map.
func from(m map[string]string) config.Source {
	return func(name string) (string, bool) {
		text, ok := m[name]
		return text, ok
	}
}

func TestLoad_DefaultsAreThoseOfTheEngine(t *testing.T) {
	got, err := config.Load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Settings{
		Engine: engine.Options{
			SessionTimeout: 30 * time.Second, HeartbeatInterval: 5 * time.Second, CancelGrace: 10 * time.Minute,
			DefaultAttemptTimeout: 24 * time.Hour, MaxIdlePoll: 15 * time.Second, MaxRedeliveries: 3, MaxActiveExecutions: -1, MaxFanOut: 10_000,
			MaxHistoryEvents: 50_000, MaxPayloadBytes: 1 << 20, MaxJoinBytes: 16 << 20, CacheBytes: 64 << 20,
		},
		Listen: "127.0.0.1:7474", Database: "perigee.db", DatabaseMode: config.DatabaseDirect, DatabaseConnections: 8,
		TickMode: config.TickPrecise, LogLevel: slog.LevelInfo, LogFormat: config.LogText,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(engine.Options{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_AFlagGoesBeforeItsVariable(t *testing.T) {
	got, err := config.Load(
		from(map[string]string{"session-timeout": "2s"}),
		from(map[string]string{"PERIGEE_SESSION_TIMEOUT": "3s", "PERIGEE_HEARTBEAT_INTERVAL": "500ms", "PERIGEE_CANCEL_GRACE": ""}))
	if err != nil {
		t.Fatal(err)
	}
	e := got.Engine
	if e.SessionTimeout != 2*time.Second || e.HeartbeatInterval != 500*time.Millisecond || e.CancelGrace != 10*time.Minute {
		t.Errorf("got %v, %v, %v", e.SessionTimeout, e.HeartbeatInterval, e.CancelGrace)
	}
}

func TestLoad_ZeroMeansNoLimit(t *testing.T) {
	got, err := config.Load(from(map[string]string{"max-fan-out": "0", "max-payload-bytes": "0", "max-redeliveries": "0"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := got.Engine; e.MaxFanOut >= 0 || e.MaxPayloadBytes >= 0 || e.MaxRedeliveries >= 0 {
		t.Errorf("got %d, %d, %d", e.MaxFanOut, e.MaxPayloadBytes, e.MaxRedeliveries)
	}
}

func TestLoad_ReadsSizesAndNetworks(t *testing.T) {
	got, err := config.Load(from(map[string]string{"max-payload-bytes": "900KiB", "http-allow": "10.1.2.3/16, ::1"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Engine.MaxPayloadBytes != 900<<10 {
		t.Errorf("max-payload-bytes: %d", got.Engine.MaxPayloadBytes)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::1/128")}
	if diff := cmp.Diff(want, got.HTTPAllow, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("http-allow (-want +got):\n%s", diff)
	}
}

func TestLoad_TellsAllFaultsWithTheirPlaces(t *testing.T) {
	_, err := config.Load(
		from(map[string]string{"listen": "localhost", "session-timeout": "5", "max-fan-out": "-1", "max-payload-bytes": "1MB", "enable-http-adapter": "yes"}),
		from(map[string]string{"PERIGEE_TICK_MODE": "hourly", "PERIGEE_LOG_LEVEL": "loud", "PERIGEE_HTTP_ALLOW": "intranet", "PERIGEE_CANCEL_GRACE": "0s"}))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`--listen: expected host:port with a port from 0 to 65535, such as 127.0.0.1:7474, got "localhost"`,
		`--session-timeout: duration "5" has a number without a unit; write it like 500ms, 30s, 1h30m, 1.5h, 7d or P1DT2H`,
		`PERIGEE_CANCEL_GRACE: duration "0s" must be above 0`,
		`--max-fan-out: expected a whole number from 0 to 2147483647, got "-1"`,
		`--max-payload-bytes: expected a number of bytes such as 900000, 900KiB or 1MiB, got "1MB"`,
		`--enable-http-adapter: expected true or false, got "yes"`,
		`PERIGEE_HTTP_ALLOW: expected networks such as 10.1.0.0/16,127.0.0.1/32, got "intranet"`,
		`PERIGEE_TICK_MODE: expected one of precise, minute, on-demand, got "hourly"`,
		`PERIGEE_LOG_LEVEL: expected debug, info, warn or error, got "loud"`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoad_RefusesWhatCannotWorkTogether(t *testing.T) {
	_, err := config.Load(from(map[string]string{"session-timeout": "2s"}), nil)
	if err == nil || !strings.Contains(err.Error(), "heartbeat-interval (5s) must be below session-timeout (2s)") {
		t.Errorf("got %v", err)
	}
}

func TestLoad_ListensOnHostAndPort(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "localhost:7474", "[::1]:7474", ":65535", "0.0.0.0:80"} {
		if got, err := config.Load(from(map[string]string{"listen": address}), nil); err != nil || got.Listen != address {
			t.Errorf("%s: got %q, %v", address, got.Listen, err)
		}
	}
	for _, address := range []string{"7474", "127.0.0.1", "::1:7474", ":", "localhost:http", ":65536", ":-1"} {
		if _, err := config.Load(nil, from(map[string]string{"PERIGEE_LISTEN": address})); err == nil || !strings.Contains(err.Error(), "PERIGEE_LISTEN: expected host:port") {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// The page shows the table as it is; `go test ./infra/config -update` writes it.
func TestOperations_ShowsTheTable(t *testing.T) {
	const (
		page  = "../../docs/operations.md"
		begin = "<!-- settings: written by `go test ./infra/config -update` -->\n"
		end   = "<!-- end of settings -->\n"
	)
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(raw), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has lost its marks %q and %q", page, begin, end)
	}
	want := config.Markdown()
	if *update && shown != want {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("%s differs from the source; run `go test ./infra/config -update` (-want +got):\n%s", page, diff)
	}
}
