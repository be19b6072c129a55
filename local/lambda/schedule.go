package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// schedules calls the tick function: every minute or, on demand, when it has
// asked for that, for which it stands in for EventBridge Scheduler.
type schedules struct {
	server   *http.Server
	listener net.Listener
	changed  chan struct{}

	mu sync.Mutex
	at time.Time // of the one schedule there is; zero: it was never set
}

// wakeGroup is the schedule group that the functions are told.
const wakeGroup = "perigee-wake"

func newSchedules(ctx context.Context) (*schedules, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &schedules{listener: listener, changed: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /schedules/{name}", s.set)
	mux.HandleFunc("PUT /schedules/{name}", s.set)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.server.Serve(listener) // until Close
	return s, nil
}

// Close ends the stand-in.
func (s *schedules) Close() error { return s.server.Close() }

// environment leads the functions to the stand-in.
func (s *schedules) environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=http://" + s.listener.Addr().String(), "PERIGEE_WAKE_GROUP=" + wakeGroup,
		"PERIGEE_WAKE_ROLE=arn:aws:iam::000000000000:role/wake", "PERIGEE_WAKE_TARGET=arn:aws:lambda:us-east-1:000000000000:function:perigee-tick",
	}
}

// set answers UpdateSchedule (PUT), of a schedule that was set before, and
// CreateSchedule.
func (s *schedules) set(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPut && s.at.IsZero() {
		w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"Message":"Schedule does not exist."}`)
		return
	}
	var body struct{ ScheduleExpression string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body)
	if err == nil {
		s.at, err = time.Parse("at(2006-01-02T15:04:05)", body.ScheduleExpression)
	}
	if err != nil {
		w.Header().Set("X-Amzn-Errortype", "ValidationException")
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"Message": err.Error()}) // who went away needs none
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	fmt.Fprint(w, `{"ScheduleArn":"arn:aws:scheduler:us-east-1:000000000000:schedule/`+wakeGroup+`/`+strings.ReplaceAll(r.PathValue("name"), `"`, "")+`"}`)
}

// until is how long to wait for the next scheduled call.
func (s *schedules) until(now time.Time, every time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.After(now) {
		return min(every, s.at.Sub(now))
	}
	return every
}

// run calls the tick function until ctx ends. Calls do not wait for each other.
func (s *schedules) run(ctx context.Context, tick *Function, onDemand bool, log *slog.Logger) {
	every := time.Minute
	if onDemand {
		every = time.Hour
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	call := true
	for {
		if call {
			calls.Go(func() {
				if o := tick.invoke(ctx, []byte(`{"source":"aws.events"}`)); (o.err != nil || o.failed) && ctx.Err() == nil {
					log.Warn("a tick failed; the next makes good for it", "error", o.err, "answer", string(o.payload))
				}
			})
		}
		timer := time.NewTimer(s.until(time.Now(), every))
		select {
		case <-timer.C:
			call = true
		case <-s.changed:
			call = false
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}
