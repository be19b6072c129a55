package blackbox_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"perigee/engine"
	"perigee/functions/httpapi"
	"perigee/local/database"
	"perigee/store"
)

// inProcess serves from the test's own process, which is quick and lets a test
// turn the clock.
type inProcess struct{}

type inProcessServer struct {
	t    *testing.T
	db   testDatabase
	s    settings
	logs serverLog

	http *httptest.Server
	eng  *engine.Engine
	stop func()        // ends the ticks
	done chan struct{} // they have ended
	// stores of all lives: a killed server's may still be at work, as the
	// database of a killed process is.
	stores []store.Store
}

func (inProcess) start(t *testing.T, db testDatabase, s settings) server {
	t.Helper()
	srv := &inProcessServer{t: t, db: db, s: s}
	t.Cleanup(func() {
		if srv.http != nil {
			srv.kill()
		}
		for _, st := range srv.stores {
			if err := st.Close(); err != nil {
				t.Errorf("close the store: %v", err)
			}
		}
	})
	srv.restart()
	return srv
}

func (s *inProcessServer) restart() {
	s.t.Helper()
	set, err := s.s.load(s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	st, err := database.Open(context.Background(), database.OptionsOf(set))
	if err != nil {
		s.t.Fatal(err)
	}
	s.stores = append(s.stores, st)
	if s.db.kind == "sqlite" {
		if _, _, err := st.Migrate(context.Background()); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.s.disturb != nil {
		st = s.s.disturb(st)
	}
	logger := slog.New(slog.NewJSONHandler(&s.logs, nil))
	opts := set.Engine
	opts.HoldPolls, opts.Logger, opts.Clock = true, logger, s.s.clock
	if s.eng, err = engine.New(st, opts); err != nil {
		s.t.Fatal(err)
	}
	s.http = httptest.NewServer(httpapi.New(httpapi.Options{
		Engine: s.eng, Open: true, HoldPolls: true, MaxPayloadBytes: set.Engine.MaxPayloadBytes, Ready: st.Ping, Logger: logger,
	}))
	s.http.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	go func(e *engine.Engine) {
		defer close(s.done)
		if s.s.clock == nil {
			_ = e.Run(ctx)
		}
	}(s.eng)
}

func (s *inProcessServer) URL() string { return s.http.URL }

func (s *inProcessServer) log() *serverLog { return &s.logs }

// kill cuts every connection and forgets the engine with all that it knew.
func (s *inProcessServer) kill() {
	s.http.Config.Handler = http.NotFoundHandler()
	s.http.CloseClientConnections()
	s.stop()
	s.eng.Close()
	<-s.done
	s.http.Close()
	s.http = nil
}

// tick is one pass over due work, for a server whose test has the clock.
func (s *inProcessServer) tick(most int) (engine.TickReport, error) {
	return s.eng.Tick(context.Background(), most)
}
