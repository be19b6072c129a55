package client

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Values of Options.RetryFor beside a plain duration.
const (
	// NoRetry makes every call a single try.
	NoRetry time.Duration = -1
	// Forever repeats a call until its context ends.
	Forever time.Duration = math.MaxInt64
)

const (
	defaultRetryFor = time.Minute
	defaultTimeout  = 30 * time.Second
	// idleConnections bounds the connections kept open to one server. Only as
	// many exist as calls ran at once, so that a busy worker never dials.
	idleConnections = 512
)

// Options configures a Client. The zero value works.
type Options struct {
	// Token is the bearer token sent with every call; "" sends none.
	Token string
	// HTTPClient makes the calls; nil: one of the client's own, which keeps its
	// connections open. It should have no Timeout: long polls last 25 seconds.
	HTTPClient *http.Client
	// UserAgent is sent with every call; "": "perigee-go".
	UserAgent string
	// RetryFor is how long a call is repeated while the server is away or has no
	// room (connection errors, 429, 5xx, 409 CONFLICT), in any case not past the
	// end of its context. A fault of the server's own (INTERNAL) may stay: it is
	// repeated with Forever only. 0: one minute. See NoRetry and Forever.
	RetryFor time.Duration
	// OnRetry, if set, is told of each try that failed and will be repeated after
	// the pause. Many goroutines may call it.
	OnRetry func(err error, pause time.Duration)
	// Timeout bounds one try, on top of what the call asks the server to wait.
	// 0: 30 s.
	Timeout time.Duration
}

// validate names the field and the rule that it breaks.
func (o Options) validate() error {
	switch {
	case o.RetryFor < NoRetry:
		return fmt.Errorf("client options: RetryFor is %v: expected a duration, NoRetry or Forever", o.RetryFor)
	case o.Timeout < 0:
		return fmt.Errorf("client options: Timeout is %v: expected 0 or more", o.Timeout)
	}
	return nil
}

// Client calls one Perigee server. It is safe for use by many goroutines.
type Client struct {
	base string // without a slash at the end
	opts Options
}

// New makes a client of the server at an http or https URL, such as
// http://127.0.0.1:7474. No connection is made before the first call.
func New(server string, opts Options) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server URL %q: expected http:// or https:// and a host, such as http://127.0.0.1:7474", server)
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.HTTPClient == nil {
		opts.HTTPClient = &http.Client{Transport: newTransport()}
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "perigee-go"
	}
	if opts.RetryFor == 0 {
		opts.RetryFor = defaultRetryFor
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	return &Client{base: strings.TrimSuffix(u.String(), "/"), opts: opts}, nil
}

// URL is the server's address, without a slash at the end.
func (c *Client) URL() string { return c.base }

// WithRetryFor is the same client, sharing its connections, with another
// Options.RetryFor.
func (c *Client) WithRetryFor(d time.Duration) *Client {
	changed := *c
	changed.opts.RetryFor = d
	return &changed
}

// WithOnRetry is the same client, sharing its connections, with f as its
// Options.OnRetry unless it has one.
func (c *Client) WithOnRetry(f func(err error, pause time.Duration)) *Client {
	changed := *c
	if changed.opts.OnRetry == nil {
		changed.opts.OnRetry = f
	}
	return &changed
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.opts.HTTPClient.CloseIdleConnections() }

func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          0, // bounded for each host below
		MaxIdleConnsPerHost:   idleConnections,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
