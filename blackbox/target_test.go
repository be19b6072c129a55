package blackbox_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"
	"testing"

	"perigee/engine"
	"perigee/infra/config"
	"perigee/store"
)

// target makes servers. Another kind of installation takes part in all tests
// by being one.
type target interface {
	// start serves a database until the test ends.
	start(t *testing.T, db testDatabase, s settings) server
}

// server is one server on a database that outlives it.
type server interface {
	// URL is where it is; after restart it may be elsewhere.
	URL() string
	// kill ends it at once, as a loss of power would.
	kill()
	// restart serves the same database with the same settings.
	restart()
	// log is what it has logged so far, over all its lives.
	log() *serverLog
}

// settings are what a test asks of its server.
type settings struct {
	// flags by their names as in docs/operations.md, without --.
	flags map[string]string
	// clock is the time in epoch milliseconds; nil: the database's. A server
	// with a clock has no ticks: the test makes them.
	clock func() int64
	// disturb may put something between engine and store.
	disturb func(store.Store) store.Store
}

// load reads the settings of a server on a database as the server would.
func (s settings) load(db testDatabase) (config.Settings, error) {
	all := maps.Clone(db.flags)
	maps.Copy(all, s.flags)
	if s.flags["session-timeout"] != "" && s.flags["heartbeat-interval"] == "" {
		panic("settings with a session-timeout need a heartbeat-interval")
	}
	return config.Load(func(name string) (string, bool) { v, ok := all[name]; return v, ok }, nil)
}

// engineOptions are those that doctor needs to judge by.
func (s settings) engineOptions(t *testing.T, db testDatabase) engine.Options {
	t.Helper()
	loaded, err := s.load(db)
	if err != nil {
		t.Fatal(err)
	}
	loaded.Engine.Clock = s.clock
	return loaded.Engine
}

// targetFor is the target of -target, unless the settings need one that runs
// in this process.
func targetFor(t *testing.T, s settings) target {
	t.Helper()
	switch {
	case *targetName == "inprocess" || s.clock != nil || s.disturb != nil:
		return inProcess{}
	case *targetName == "process":
		return processes{}
	case *targetName == "lambda":
		return lambdas{}
	}
	t.Fatalf("-target names %q; expected inprocess, process or lambda", *targetName)
	return nil
}

// serverLog collects JSON lines.
type serverLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes whole lines, and parts of them.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are the complete lines of one level, or, with "", all.
func (l *serverLog) lines(level string) []string {
	l.mu.Lock()
	text := bytes.Clone(l.text.Bytes())
	l.mu.Unlock()
	var found []string
	for line := range bytes.Lines(text) {
		var entry struct{ Level string }
		if json.Unmarshal(line, &entry) != nil || level != "" && entry.Level != level {
			if level != "" || len(line) == 0 {
				continue
			}
		}
		found = append(found, string(bytes.TrimSpace(line)))
	}
	return found
}
