package outbound_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/infra/outbound"
)

// loopback is what tests may call.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// names resolves each name to the addresses of its next lookup; the last ones
// stay.
type names map[string][][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	turns := n[host]
	if len(turns) == 0 {
		return nil, fmt.Errorf("no such host: %s", host)
	}
	if len(turns) > 1 {
		n[host] = turns[1:]
	}
	var addrs []netip.Addr
	for _, text := range turns[0] {
		addrs = append(addrs, netip.MustParseAddr(text))
	}
	return addrs, nil
}

func newClient(t *testing.T, o outbound.Options) *outbound.Client {
	t.Helper()
	c := outbound.New(o)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func get(t *testing.T, c *outbound.Client, to string) (outbound.Response, error) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return c.Send(t.Context(), outbound.Request{Method: "GET", URL: u, Redirects: 5})
}

// called fails the test where a call arrives.
func called(t *testing.T) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { t.Error("the service was called") }
}

// named is the URL of a test's server under another host.
func named(t *testing.T, server, host string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + host + ":" + u.Port()
}

func wantRefused(t *testing.T, err error, what string) *outbound.Error {
	t.Helper()
	var refused *outbound.RefusedError
	var e *outbound.Error
	if !errors.As(err, &refused) || !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if refused.What != what || !e.Final {
		t.Errorf("refused as %q, final %v; want %q, true", refused.What, e.Final, what)
	}
	return e
}

func TestSend_RefusesAddressesOfThisMachine(t *testing.T) {
	server := serve(t, called(t))
	c := newClient(t, outbound.Options{Resolver: names{"service.test": {{"127.0.0.1"}}}})
	for _, host := range []string{"127.0.0.1", "service.test"} {
		_, err := get(t, c, named(t, server, host))
		if e := wantRefused(t, err, "loopback"); e.Sent {
			t.Errorf("%s: it counts as sent", host)
		}
	}
}

func TestSend_RefusesOtherWaysToWriteAnAddress(t *testing.T) {
	server := serve(t, called(t))
	c := newClient(t, outbound.Options{Allow: loopback, Resolver: names{"mapped.test": {{"::ffff:10.0.0.1"}}}})
	_, err := get(t, c, named(t, server, "[::ffff:127.0.0.1]"))
	wantRefused(t, err, "an IPv4 address inside of IPv6")
	_, err = get(t, c, named(t, server, "mapped.test"))
	wantRefused(t, err, "private")
	for _, host := range []string{"2130706433", "0x7f.1", "0177.0.0.1"} { // a name, not an address
		if _, err := get(t, c, named(t, server, host)); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

func TestSend_SkipsAddressesThatItRefuses(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "there") })
	c := newClient(t, outbound.Options{Allow: loopback, Resolver: names{"service.test": {{"10.0.0.1", "127.0.0.1"}}}})
	resp, err := get(t, c, named(t, server, "service.test"))
	if err != nil || string(resp.Body) != "there" {
		t.Errorf("got %q, %v", resp.Body, err)
	}
}

// A name that answers with an address that may be called, and a moment later
// with another, gains nothing: what was looked at is what is connected to.
func TestSend_LooksAtTheAddressThatItConnectsTo(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the next call connects anew
		fmt.Fprint(w, r.Host)
	})
	resolver := names{"rebinding.test": {{"127.0.0.1"}, {"169.254.169.254"}}}
	c := newClient(t, outbound.Options{Allow: loopback, Resolver: resolver})
	if _, err := get(t, c, named(t, server, "rebinding.test")); err != nil {
		t.Fatal(err)
	}
	_, err := get(t, c, named(t, server, "rebinding.test"))
	wantRefused(t, err, "cloud metadata")
}

func TestSend_RefusesWhereARedirectLeads(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	c := newClient(t, outbound.Options{Allow: loopback})
	_, err := get(t, c, server)
	if e := wantRefused(t, err, "cloud metadata"); !e.Sent {
		t.Error("the first call went out, but does not count as sent")
	}
}

func TestSend_BoundsRedirects(t *testing.T) {
	var calls atomic.Int32
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprintf("/%d", calls.Add(1)), http.StatusFound)
	})
	_, err := get(t, newClient(t, outbound.Options{Allow: loopback}), server)
	if err == nil || !strings.HasSuffix(err.Error(), "stopped after 5 redirects") || calls.Load() != 6 {
		t.Errorf("got %v after %d calls", err, calls.Load())
	}
}

func TestSend_RefusesRedirectsToOtherSchemes(t *testing.T) {
	for location, want := range map[string]string{
		"ftp://service.test/":         "a redirect to ftp: only http and https are followed",
		"file:///etc/passwd":          "a redirect to file: only http and https are followed",
		"http://user:pw@service.test": "a redirect with credentials in its URL is not followed",
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
		_, err := get(t, newClient(t, outbound.Options{Allow: loopback}), server)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v", location, err)
		}
	}
}

func TestSend_TakesCredentialsToTheirHostOnly(t *testing.T) {
	seen := make(chan http.Header, 2)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other, http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		default:
			seen <- r.Header
		}
	})
	c := newClient(t, outbound.Options{Allow: loopback})
	for path, want := range map[string]map[string]string{
		"/near": {"Authorization": "Bearer one", "X-Api-Key": "two", "Cookie": "three", "X-Plain": "four", "Referer": ""},
		"/away": {"Authorization": "", "X-Api-Key": "", "Cookie": "", "X-Plain": "four", "Referer": ""},
	} {
		u, err := url.Parse(first + path + "?token=five")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Send(t.Context(), outbound.Request{
			Method: "POST", URL: u, Redirects: 5, Private: []string{"X-Api-Key"}, Body: []byte("{}"),
			Header: http.Header{"Authorization": {"Bearer one"}, "X-Api-Key": {"two"}, "Cookie": {"three"}, "X-Plain": {"four"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		header := <-seen
		got := map[string]string{}
		for name := range want {
			got[name] = header.Get(name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// What went elsewhere and comes back is somebody else's request.
func TestSend_DoesNotGiveCredentialsBackAfterADetour(t *testing.T) {
	seen := make(chan http.Header, 1)
	var home string
	away := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, home+"/end", http.StatusFound) })
	home = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			seen <- r.Header
			return
		}
		http.Redirect(w, r, away, http.StatusFound)
	})
	u, err := url.Parse(home)
	if err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t, outbound.Options{Allow: loopback}).Send(t.Context(), outbound.Request{
		Method: "GET", URL: u, Redirects: 5, Header: http.Header{"X-Api-Key": {"two"}}, Private: []string{"X-Api-Key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := (<-seen).Get("X-Api-Key"); got != "" {
		t.Errorf("X-Api-Key came back: %q", got)
	}
}

func TestSend_DoesNotUseTheEnvironmentsProxy(t *testing.T) {
	proxy := serve(t, called(t))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy)
	}
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	c := newClient(t, outbound.Options{Allow: loopback, Resolver: names{"service.test": {{"127.0.0.1"}}}})
	resp, err := get(t, c, named(t, server, "service.test"))
	if err != nil || string(resp.Body) != "direct" {
		t.Errorf("got %q, %v", resp.Body, err)
	}
}

func TestSend_VerifiesCertificates(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secure") }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshake that fails
	srv.StartTLS()
	t.Cleanup(srv.Close)

	_, err := get(t, newClient(t, outbound.Options{Allow: loopback}), srv.URL)
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("with the system's authorities: got %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	resp, err := get(t, newClient(t, outbound.Options{Allow: loopback, TLS: &tls.Config{RootCAs: roots}}), srv.URL)
	if err != nil || string(resp.Body) != "secure" {
		t.Errorf("with the server's own: got %q, %v", resp.Body, err)
	}
}

func TestSend_BoundsTheAnswer(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fits":
			fmt.Fprint(w, strings.Repeat("x", 100))
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
		default:
			for { // without an end, and without a length
				if _, err := io.WriteString(w, strings.Repeat("x", 50)); err != nil {
					return
				}
			}
		}
	})
	c := newClient(t, outbound.Options{Allow: loopback, MaxBytes: 100})
	if resp, err := get(t, c, server+"/fits"); err != nil || len(resp.Body) != 100 {
		t.Errorf("just within the limit: %d bytes, %v", len(resp.Body), err)
	}
	_, err := get(t, c, server)
	var e *outbound.Error
	if !errors.As(err, &e) || !e.TooLarge || !e.Final || !strings.Contains(e.Error(), "more than 100 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := get(t, c, server+"/header"); err == nil {
		t.Error("a header of 100 KiB is taken")
	}
}

func TestSend_ErrorsHoldNoQuery(t *testing.T) {
	c := newClient(t, outbound.Options{Resolver: names{}})
	_, err := get(t, c, "https://service.test/path?token=confidential")
	if err == nil || err.Error() != "GET https://service.test/path: no such host: service.test" {
		t.Errorf("got %v", err)
	}
}

func TestSend_DoesNotFollowFromHTTPSToHTTP(t *testing.T) {
	plain := serve(t, called(t))
	srv := httptest.NewTLSServer(http.RedirectHandler(plain, http.StatusFound))
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	_, err := get(t, newClient(t, outbound.Options{Allow: loopback, TLS: &tls.Config{RootCAs: roots}}), srv.URL)
	if err == nil || !strings.HasSuffix(err.Error(), "a redirect from https to http is not followed") {
		t.Errorf("got %v", err)
	}
}
