package lambda

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Function is a function with its processes. It is safe for concurrent use.
type Function struct {
	Name        string // api, worker, tick or migrate
	Bootstrap   string // the binary
	Environment []string
	Timeout     time.Duration // of one call
	Concurrency int           // calls at once
	MemoryMB    int           // told to the function; nothing is limited
	Log         io.Writer     // what its processes write; safe for concurrent use
	Unrest      *Unrest       // nil: all goes well
	// Started is told how long each process took from its start until it asked
	// for its first call; nil: nobody is.
	Started func(time.Duration)

	mu   sync.Mutex
	idle []*sandbox // stopped; the latest last, which is taken first
	all  map[*sandbox]struct{}
	busy int
}

// ARN is a name of the kind that functions have.
func (f *Function) ARN() string {
	return "arn:aws:lambda:us-east-1:000000000000:function:perigee-" + f.Name
}

// environment is what Lambda adds to a function's own variables.
func (f *Function) environment() []string {
	return append([]string{
		"AWS_LAMBDA_FUNCTION_NAME=perigee-" + f.Name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		fmt.Sprint("AWS_LAMBDA_FUNCTION_MEMORY_SIZE=", f.MemoryMB), "_HANDLER=bootstrap", "TZ=:UTC",
		"PATH=" + os.Getenv("PATH"), "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_SESSION_TOKEN=local",
	}, f.Environment...)
}

// invoke makes a call: on a process that is idle or, where none is, on a new one.
func (f *Function) invoke(ctx context.Context, payload []byte) outcome {
	if len(payload) > payloadBytes {
		return outcome{err: errTooLarge}
	}
	fate := f.Unrest.draw()
	if fate.throttle {
		return outcome{err: errThrottled}
	}
	s, err := f.take(ctx, fate.churn)
	if err != nil {
		return outcome{err: err}
	}
	stop := fate.befall(s)
	o := s.call(ctx, invocation{id: newID(), payload: payload, deadline: time.Now().Add(f.Timeout)})
	stop()
	if o.err != nil {
		f.drop(s)
		return o
	}
	go f.giveBack(s)
	if fate.loseAnswer {
		return outcome{err: errCrashed}
	}
	return o
}

// Call makes a call: on a process that is idle or, where none is, on a new one.
// An error is the platform's or the function's own.
func (f *Function) Call(ctx context.Context, payload []byte) (answer []byte, err error) {
	o := f.invoke(ctx, payload)
	if o.err == nil && o.failed {
		o.err = fmt.Errorf("function %s: %s", f.Name, o.payload)
	}
	return o.payload, o.err
}

// Busy is how many processes serve a call, or have not come to rest yet.
func (f *Function) Busy() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy
}

// Resting reports whether no process is busy.
func (f *Function) Resting() bool { return f.Busy() == 0 }

// take gives a process that nobody else has.
func (f *Function) take(ctx context.Context, churn bool) (*sandbox, error) {
	f.mu.Lock()
	if f.busy >= f.Concurrency {
		f.mu.Unlock()
		return nil, errThrottled
	}
	f.busy++
	for len(f.idle) > 0 {
		s := f.idle[len(f.idle)-1]
		f.idle = f.idle[:len(f.idle)-1]
		if !churn && !s.ended() {
			f.mu.Unlock()
			return s, nil
		}
		delete(f.all, s)
		go s.kill()
	}
	f.mu.Unlock()
	s, err := f.start(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.busy--
		return nil, err
	}
	if f.all == nil {
		f.all = map[*sandbox]struct{}{}
	}
	f.all[s] = struct{}{}
	return s, nil
}

// giveBack returns a process to the pool, stopped.
func (f *Function) giveBack(s *sandbox) {
	if !s.rest() {
		f.drop(s)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	f.idle = append(f.idle, s)
}

// drop ends a process that is in use.
func (f *Function) drop(s *sandbox) {
	s.kill()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	delete(f.all, s)
}

// Close ends all processes, busy ones too.
func (f *Function) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.all {
		s.kill()
	}
}

// newID makes an id of an invocation or request.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
