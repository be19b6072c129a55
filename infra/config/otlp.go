package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Headers are headers by name whose values are secrets: whatever prints them
// prints names alone.
type Headers map[string]string

// String lists the names.
func (h Headers) String() string {
	return "[" + strings.Join(slices.Sorted(maps.Keys(h)), " ") + "]"
}

// GoString is String, too.
func (h Headers) GoString() string { return h.String() }

// MarshalText keeps the values out of JSON, and so out of logs.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// otlpEndpoint reads a URL that holds no secret; one that does is not shown.
func otlpEndpoint(s *Settings, text string) error {
	if text == "" {
		s.OTLPEndpoint = ""
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("expected a URL such as http://127.0.0.1:4318 or https://collector.example, got something else")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("expected a URL without user, query and fragment; what the collector wants to know of its callers goes into PERIGEE_OTLP_HEADERS")
	}
	s.OTLPEndpoint = text
	return nil
}

// otlpHeaders reads NAME=VALUE pairs as OpenTelemetry writes them. Faults name
// the place, for a value is a secret, and a name may be one by mistake.
func otlpHeaders(s *Settings, text string) error {
	headers := Headers{}
	for i, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, escaped, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if !found || err != nil || !headerName(name) || !headerValue(value) {
			return fmt.Errorf("expected NAME=VALUE,NAME=VALUE with values escaped by %%, such as api-key=a%%2Cb; entry %d is something else", i+1)
		}
		headers[name] = value
	}
	if s.OTLPHeaders = nil; len(headers) > 0 {
		s.OTLPHeaders = headers
	}
	return nil
}

// headerName reports whether a text may be a header's name: an HTTP token.
func headerName(name string) bool {
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// headerValue reports whether a text may be a header's value: no line ends in it.
func headerValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
