package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 2 * time.Second
	// maxAnswer bounds what is read of one answer, in bytes. The server stops
	// pages and polls at 4 MiB; the rest is room for single large payloads.
	maxAnswer = 64 << 20
)

// Request is one call of the API, for what has no method of its own.
type Request struct {
	Method      string
	Path        string // with query, from "/v1/"
	ContentType string // of Body; "": application/json
	Body        []byte
	Again       []byte        // the body of repetitions; nil: Body
	Wait        time.Duration // how long the call asks the server to wait
}

// Do makes a call, repeats it while the server is away (see Options.RetryFor)
// and gives the body of a 2xx answer. Any other answer is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	var (
		started = time.Now()
		lastErr error
	)
	for try := 0; ; try++ {
		body, err := c.try(ctx, &r)
		if err == nil {
			return body, nil
		}
		if ctx.Err() != nil && lastErr != nil {
			// What kept the call from succeeding says more than that time ran out.
			return nil, fmt.Errorf("%s %s: %w (last answer: %w)", r.Method, r.Path, context.Cause(ctx), lastErr)
		}
		lastErr = err
		pause := delay(try, err)
		if !c.repeatable(err) || time.Since(started) > c.opts.RetryFor-pause {
			return nil, err
		}
		if c.opts.OnRetry != nil {
			c.opts.OnRetry(err, pause)
		}
		if !sleep(ctx, pause) {
			return nil, fmt.Errorf("%s %s: %w (last answer: %w)", r.Method, r.Path, context.Cause(ctx), lastErr)
		}
		if r.Again != nil {
			r.Body = r.Again
		}
	}
}

func (c *Client) repeatable(err error) bool {
	if c.opts.RetryFor == Forever && CodeOf(err) == CodeInternal {
		return true
	}
	return c.opts.RetryFor != NoRetry && Temporary(err)
}

// try makes one call. An error that is neither an *Error nor of the context
// is a *connectionError.
func (c *Client) try(ctx context.Context, r *Request) ([]byte, error) {
	tryCtx, cancel := context.WithTimeout(ctx, c.opts.Timeout+r.Wait)
	defer cancel()
	var content io.Reader
	if r.Body != nil {
		content = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(tryCtx, r.Method, c.base+r.Path, content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	if r.Body != nil {
		contentType := r.ContentType
		if contentType == "" {
			contentType = "application/json"
		}
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	resp, err := c.opts.HTTPClient.Do(req)
	if err != nil {
		return nil, lost(ctx, err)
	}
	defer resp.Body.Close()
	body, err := readAll(resp)
	if err != nil {
		return nil, lost(ctx, fmt.Errorf("%s %s: read the answer: %w", r.Method, r.Path, err))
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refusal(resp.StatusCode, resp.Header, body)
	}
	return body, nil
}

// lost tells a connection that broke from a caller who gave up.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return &connectionError{cause: err}
}

// readAll reads the body to its end, so that the connection can be used again.
func readAll(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > maxAnswer {
		return nil, fmt.Errorf("the answer has %d bytes, more than %d", resp.ContentLength, maxAnswer)
	}
	if resp.ContentLength >= 0 {
		body := make([]byte, resp.ContentLength)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return body, err
}

// delay is the pause before the next try: exponential with full jitter, so
// that the callers of a server that comes back do not come back together, and
// on top of what the server asked for.
func delay(try int, err error) time.Duration {
	most := backoffMost
	if try < 5 {
		most = min(backoffMost, backoffFirst<<try)
	}
	pause := rand.N(most)
	var e *Error
	if errors.As(err, &e) {
		pause += e.RetryAfter
	}
	return pause
}

// retryAfter reads the header's form in seconds, the only one the API uses.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// sleep waits and reports whether the context lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// post sends in as JSON and reads the answer into out, where out is not nil.
func (c *Client) post(ctx context.Context, path string, in, out any) error {
	body, err := Encode(in)
	if err != nil {
		return fmt.Errorf("POST %s: encode the request: %w", path, err)
	}
	return c.call(ctx, Request{Method: http.MethodPost, Path: path, Body: body}, out)
}

func (c *Client) get(ctx context.Context, path string, wait time.Duration, out any) error {
	return c.call(ctx, Request{Method: http.MethodGet, Path: path, Wait: wait}, out)
}

func (c *Client) call(ctx context.Context, r Request, out any) error {
	body, err := c.Do(ctx, r)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: decode the answer: %w", r.Method, r.Path, err)
	}
	return nil
}

// Encode gives a value as JSON without escaping <, > and &, as a payload. A
// json.RawMessage is checked and compacted.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
