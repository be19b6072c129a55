package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Options configure a client. The zero value reaches public addresses only.
type Options struct {
	// Allow are networks that may be called although they are private. Cloud
	// metadata is only allowed by its full address.
	Allow []netip.Prefix
	// MaxBytes bounds the body of an answer after decompression; 0: 1 MiB,
	// negative: 64 MiB, which is what "no limit" can mean here.
	MaxBytes int
	// Secrets looks up what headers refer to; nil: there are none.
	Secrets Secrets
	// Resolver finds addresses; nil: the system's.
	Resolver Resolver
	// TLS is for tests with certificates of their own; nil: the system's
	// authorities.
	TLS *tls.Config
	// Now tells the time, for answers that name a moment; nil: time.Now.
	Now func() time.Time
}

const (
	defaultMaxBytes   = 1 << 20
	unboundedMaxBytes = 64 << 20
	maxHeaderBytes    = 64 << 10
	maxRedirects      = 5
	handshakeTime     = 10 * time.Second
	idleTime          = 90 * time.Second
	idleConnsPerHost  = 8
)

// userAgent is what services see where an input names nothing else.
const userAgent = "perigee"

// Client makes calls. It is safe for concurrent use and keeps connections.
type Client struct {
	transport *http.Transport
	secrets   Secrets
	maxBytes  int
	now       func() time.Time
}

// New makes a client. It connects to nothing yet.
func New(o Options) *Client {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.MaxBytes == 0:
		o.MaxBytes = defaultMaxBytes
	case o.MaxBytes < 0:
		o.MaxBytes = unboundedMaxBytes
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	d := &dialer{resolver: o.Resolver, allow: slices.Clone(o.Allow)}
	return &Client{
		transport: &http.Transport{
			Proxy:                  nil, // one named by the environment would see every call
			DialContext:            d.DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    handshakeTime,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    idleConnsPerHost,
			IdleConnTimeout:        idleTime,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		secrets:  o.Secrets,
		maxBytes: o.MaxBytes,
		now:      o.Now,
	}
}

// Close lets go of the connections that are kept.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is one call.
type Request struct {
	Method string
	URL    *url.URL // http or https, without credentials
	Header http.Header
	Body   []byte
	// Private names headers that are for the host of URL only: a redirect to
	// another one goes without them, as without Authorization and cookies.
	Private []string
	// Redirects is how many redirects are followed; 0: none, the answer is the
	// redirect itself.
	Redirects int
	// Keep is how much of the answer's body is of use: the rest is not read.
	// 0: all of it, and a body over the client's limit is an error.
	Keep int
}

// Response is an answer.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Error says why a call has no answer. The text holds neither headers nor the
// query of the URL.
type Error struct {
	Where string // "POST https://api.example.com/charges"
	// Sent says that the request went out: whether it took effect is unknown.
	Sent bool
	// TooLarge says that there was an answer, but longer than the limit.
	TooLarge bool
	// Final says that the same call would fail again: it is refused here.
	Final bool
	Cause error
}

// Error names the call and what went wrong.
func (e *Error) Error() string { return e.Where + ": " + e.Cause.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Send makes a call and reads its answer, whatever its status. It takes as long
// as ctx lets it. The error is an *Error.
func (c *Client) Send(ctx context.Context, r Request) (Response, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	fail := func(cause error) (Response, error) {
		var refused *RefusedError
		var redirect *redirectError
		e := &Error{Where: r.Method + " " + shown(r.URL), Sent: sent.Load(), Cause: plainCause(cause)}
		e.TooLarge = errors.Is(cause, errTooLarge)
		e.Final = e.TooLarge || errors.As(cause, &refused) || errors.As(cause, &redirect)
		return Response{}, e
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return fail(err)
	}
	req.Header = r.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	caller := http.Client{Transport: c.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		return checkRedirect(r, next, via)
	}}
	resp, err := caller.Do(req)
	if err != nil {
		return fail(err)
	}
	body, err := c.read(resp.Body, r.Keep)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fail(err)
	}
	return Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

var errTooLarge = errors.New("too large")

// read reads the beginning that is of use, or else to the end, failing past the
// limit.
func (c *Client) read(body io.Reader, keep int) ([]byte, error) {
	if keep > 0 {
		return io.ReadAll(io.LimitReader(body, int64(keep)))
	}
	data, err := io.ReadAll(io.LimitReader(body, int64(c.maxBytes)+1))
	if err == nil && len(data) > c.maxBytes {
		return nil, fmt.Errorf("the answer is %w: more than %d bytes; let the service store it and answer with a reference", errTooLarge, c.maxBytes)
	}
	return data, err
}

// redirectError is a redirect that is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

// checkRedirect decides about one redirect. That its address may be called is
// seen when it is connected to.
func checkRedirect(r Request, next *http.Request, via []*http.Request) error {
	switch {
	case r.Redirects == 0:
		return http.ErrUseLastResponse
	case len(via) > min(r.Redirects, maxRedirects):
		return &redirectError{fmt.Sprintf("stopped after %d redirects", len(via)-1)}
	case next.URL.Scheme != "https" && next.URL.Scheme != "http":
		return &redirectError{fmt.Sprintf("a redirect to %s: only http and https are followed", next.URL.Scheme)}
	case next.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return &redirectError{"a redirect from https to http is not followed"}
	case next.URL.User != nil:
		return &redirectError{"a redirect with credentials in its URL is not followed"}
	}
	next.Header.Del("Referer") // it would tell the next host the query of this one
	// Once the way led elsewhere, what it comes back with is no longer ours.
	home := origin(via[0].URL)
	for _, hop := range append(via[1:len(via):len(via)], next) {
		if origin(hop.URL) != home {
			forget(next.Header, r.Private)
			break
		}
	}
	return nil
}

// forget removes what is meant for one host only.
func forget(h http.Header, private []string) {
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie"} {
		h.Del(name)
	}
	for _, name := range private {
		h.Del(name)
	}
}

// origin is where a URL's credentials belong.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// shown is a URL without what may be secret in it.
func shown(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return bare.String()
}

// plainCause takes the URL, with its query, out of an error of net/http.
func plainCause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errHangUp
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused
	}
	return err
}

var (
	errTimeout = errors.New("no answer in time")
	errHangUp  = errors.New("the service hung up before its answer was complete")
)
