package push

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"perigee/engine/definition"
	"perigee/engine/exactjson"
)

const (
	// defaultTimeout bounds one delivery whose route says nothing, and
	// longestTimeout any.
	defaultTimeout = 30 * time.Second
	longestTimeout = 4 * time.Minute
	// maxRoutesBytes is more than any file of routes has.
	maxRoutesBytes = 1 << 20
)

// Routes say which tasks are pushed, and where to.
type Routes []Route

// Route is where the tasks of a pattern go.
type Route struct {
	Pattern  string        // a task's name, a prefix such as payments.*, or *
	URL      *url.URL      // nil where Function is set
	Secret   string        // the name of the secret that signs; with URL
	Function string        // name or ARN of a Lambda function
	Timeout  time.Duration // of one delivery
}

// Load reads routes from JSON text or, where the text is none, from the file
// that it names.
func Load(text string) (Routes, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if strings.HasPrefix(text, "{") {
		return Parse([]byte(text))
	}
	info, err := os.Stat(text)
	if err == nil && info.Size() > maxRoutesBytes {
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxRoutesBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read routes: %w (expected a file, or JSON such as {\"payments.*\": {\"url\": …, \"secret\": …}})", err)
	}
	raw, err := os.ReadFile(text)
	if err != nil {
		return nil, fmt.Errorf("read routes: %w", err)
	}
	return Parse(raw)
}

// Parse reads an object of patterns and targets. The error holds every fault, a
// line each.
func Parse(text []byte) (Routes, error) {
	v, err := exactjson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	if v.Kind() != exactjson.KindObject {
		return nil, fmt.Errorf("routes: expected an object {pattern: target}, got %s", v.Kind())
	}
	var routes Routes
	var faults []error
	for pattern, target := range v.Members() {
		route, err := parseRoute(pattern, target)
		if err != nil {
			faults = append(faults, fmt.Errorf("routes: %q: %w", pattern, err))
			continue
		}
		routes = append(routes, route)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	// The closest pattern counts: the name itself, then the longest prefix.
	slices.SortFunc(routes, func(a, b Route) int {
		return cmp.Or(
			cmp.Compare(strings.Count(a.Pattern, "*"), strings.Count(b.Pattern, "*")),
			cmp.Compare(len(b.Pattern), len(a.Pattern)),
			cmp.Compare(a.Pattern, b.Pattern))
	})
	return routes, nil
}

var (
	patternForm  = regexp.MustCompile(`^([a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?|\*)$`)
	secretForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	functionForm = regexp.MustCompile(`^[A-Za-z0-9_:$/-]{1,256}$`)
)

func parseRoute(pattern string, target exactjson.Value) (Route, error) {
	r := Route{Pattern: pattern, Timeout: defaultTimeout}
	if !patternForm.MatchString(pattern) {
		return r, errors.New("expected the name of a task, a prefix such as payments.*, or *")
	}
	if target.Kind() != exactjson.KindObject {
		return r, fmt.Errorf("expected {url, secret, timeout?} or {function, timeout?}, got %s", target.Kind())
	}
	for key, value := range target.Members() {
		text, ok := value.Text()
		if !ok {
			return r, fmt.Errorf("%s: expected text, got %s", key, value.Kind())
		}
		if err := r.set(key, text); err != nil {
			return r, fmt.Errorf("%s: %w", key, err)
		}
	}
	switch {
	case (r.URL == nil) == (r.Function == ""):
		return r, errors.New("expected a url or a function, and only one of them")
	case r.URL != nil && r.Secret == "":
		return r, errors.New("secret is missing: name the secret that signs the calls of this url")
	case r.URL == nil && r.Secret != "":
		return r, errors.New("secret does not go with a function: its calls are signed by AWS")
	}
	return r, nil
}

func (r *Route) set(key, text string) (err error) {
	switch key {
	case "url":
		r.URL, err = parseURL(text)
	case "secret":
		if r.Secret = text; !secretForm.MatchString(text) {
			return errors.New("expected the name of a secret: a letter or _, then letters, digits or _, at most 64")
		}
	case "function":
		if r.Function = text; !functionForm.MatchString(text) {
			return errors.New("expected the name or ARN of a Lambda function")
		}
	case "timeout":
		ms, err := definition.ParseDuration(text)
		if err != nil {
			return err
		}
		if r.Timeout = time.Duration(ms) * time.Millisecond; ms <= 0 || r.Timeout > longestTimeout {
			return fmt.Errorf("expected more than 0 and at most 4m, got %s", text)
		}
	default:
		return errors.New("unknown key; known: url, secret, function, timeout")
	}
	return err
}

// parseURL takes https and, for workers on the same machine, http to loopback.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("expected an absolute https URL")
	case u.User != nil:
		return nil, errors.New("it holds credentials; calls are signed with the route's secret")
	case u.Scheme == "http" && !onThisMachine(u.Hostname()):
		return nil, errors.New("expected https; http is for workers on localhost only")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Find is the route of a task, the closest pattern's; false where it has none.
func (rs Routes) Find(task string) (Route, bool) {
	for _, r := range rs {
		if prefix, open := strings.CutSuffix(r.Pattern, "*"); r.Pattern == task || open && strings.HasPrefix(task, prefix) {
			return r, true
		}
	}
	return Route{}, false
}
