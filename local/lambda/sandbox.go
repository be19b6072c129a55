package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// payloadBytes is what Lambda takes of a request or answer.
const payloadBytes = 6 << 20

// The ways in which a call fails that are the platform's.
var (
	errThrottled = errors.New("throttled: as many processes as allowed are busy")
	errTimedOut  = errors.New("the call took longer than the function's time limit; its process was ended")
	errCrashed   = errors.New("the process ended during the call")
	errTooLarge  = errors.New("the answer has more than 6 MB")
)

// invocation is a call on its way to a process.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
}

// outcome is what a process answered.
type outcome struct {
	payload []byte
	failed  bool // the function returned an error, which payload tells
	err     error
}

// sandbox is a process and the Runtime API that it alone speaks to. A sandbox
// has one owner at a time: who starts it, then whoever takes it from the pool.
type sandbox struct {
	cmd    *exec.Cmd
	server *http.Server
	// asked gets a token whenever the process asks for its next invocation, calls
	// hands it over, and answers brings what came of it.
	asked   chan struct{}
	calls   chan invocation
	answers chan outcome
	exited  chan struct{} // closed when the process has ended
	end     sync.Once

	mu      sync.Mutex
	current string // id of the invocation that may be answered
}

// start starts a process and waits until it asks for its first invocation.
func (f *Function) start(ctx context.Context) (*sandbox, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sandbox{
		cmd:   exec.Command(f.Bootstrap),
		asked: make(chan struct{}, 1), calls: make(chan invocation), answers: make(chan outcome, 1), exited: make(chan struct{}),
	}
	s.server = &http.Server{Handler: s.runtimeAPI(f), ReadHeaderTimeout: 10 * time.Second}
	go s.server.Serve(listener) // until end closes it
	s.cmd.Env = append(f.environment(), "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
	s.cmd.Stdout, s.cmd.Stderr = f.Log, f.Log
	s.cmd.SysProcAttr = attributes()
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		s.server.Close()
		return nil, fmt.Errorf("start function %s: %w", f.Name, err)
	}
	go func() {
		s.cmd.Wait() // how it ended is in its log
		close(s.exited)
		s.server.Close()
	}()
	timer := time.NewTimer(initTime)
	defer timer.Stop()
	select {
	case <-s.asked:
		if f.Started != nil {
			f.Started(time.Since(begun))
		}
		return s, nil
	case <-s.exited:
		return nil, fmt.Errorf("function %s ended while it started; its log says why", f.Name)
	case <-timer.C:
		s.kill()
		return nil, fmt.Errorf("function %s did not start within %s", f.Name, initTime)
	case <-ctx.Done():
		s.kill()
		return nil, ctx.Err()
	}
}

// initTime is what Lambda gives a function to start.
const initTime = 10 * time.Second

// kill ends the process at once and waits until it is gone.
func (s *sandbox) kill() {
	s.end.Do(func() {
		s.cmd.Process.Kill() // it may have ended by itself
		<-s.exited
	})
}

// ended reports whether the process is gone.
func (s *sandbox) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// call hands an invocation to the process and waits for the answer. The
// process is not to be used again where err is not nil.
func (s *sandbox) call(ctx context.Context, v invocation) outcome {
	s.mu.Lock()
	s.current = v.id
	s.mu.Unlock()
	thaw(s.cmd.Process)
	timer := time.NewTimer(time.Until(v.deadline))
	defer timer.Stop()
	for calls := s.calls; ; {
		select {
		case calls <- v:
			calls = nil
		case o := <-s.answers:
			return o
		case <-s.exited:
			return outcome{err: errCrashed}
		case <-timer.C:
			return outcome{err: errTimedOut}
		case <-ctx.Done():
			return outcome{err: ctx.Err()}
		}
	}
}

// rest stops the process once it asks for more, as it is stopped between calls.
// False: it has ended instead.
func (s *sandbox) rest() bool {
	select {
	case <-s.asked:
		freeze(s.cmd.Process)
		return true
	case <-s.exited:
		return false
	}
}

// runtimeAPI is what the process speaks to.
func (s *sandbox) runtimeAPI(f *Function) http.Handler {
	const root = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+root+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.asked <- struct{}{}:
		default:
		}
		select {
		case v := <-s.calls:
			h := w.Header()
			h.Set("Lambda-Runtime-Aws-Request-Id", v.id)
			h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(v.deadline.UnixMilli(), 10))
			h.Set("Lambda-Runtime-Invoked-Function-Arn", f.ARN())
			h.Set("Content-Type", "application/json")
			w.Write(v.payload) // a process that has ended needs none
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+root+"invocation/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
		what := r.PathValue("what")
		s.mu.Lock()
		fits := r.PathValue("id") == s.current && (what == "response" || what == "error")
		if fits {
			s.current = ""
		}
		s.mu.Unlock()
		if !fits {
			http.Error(w, `{"errorType":"InvalidRequestID"}`, http.StatusBadRequest)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, payloadBytes+1))
		o := outcome{payload: body, failed: what == "error"}
		switch {
		case err != nil:
			o = outcome{err: errCrashed}
		case len(body) > payloadBytes:
			o = outcome{err: errTooLarge}
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
		s.answers <- o
	})
	mux.HandleFunc("POST "+root+"init/error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	return mux
}
