package outbound

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perigee/engine/exactjson"
)

// Secrets looks up a secret by its name. ErrNoSecret, wrapped, says that there
// is none; any other error may be gone at the next try. Neither may hold the
// secret.
type Secrets func(ctx context.Context, name string) (string, error)

// ErrNoSecret is the error of a lookup that found nothing.
var ErrNoSecret = errors.New("there is no such secret")

// secretVariable is how the names of variables begin that hold secrets.
const secretVariable = "PERIGEE_SECRET_"

// Environment gives the secrets of environment variables: NAME is in
// PERIGEE_SECRET_NAME. An empty variable counts as none.
func Environment(lookup func(variable string) (string, bool)) Secrets {
	return func(_ context.Context, name string) (string, error) {
		if value, set := lookup(secretVariable + name); set && value != "" {
			return value, nil
		}
		return "", fmt.Errorf("secret %s: %w (set %s where the server runs)", name, ErrNoSecret, secretVariable+name)
	}
}

// How long a document of secrets is trusted, and how soon it may be asked for
// again where it does not have a name: somebody may just have put it there.
const (
	documentFresh = 5 * time.Minute
	documentAgain = 10 * time.Second
)

// document is a text of secrets that is kept for a while.
type document struct {
	read func(context.Context) (string, error)
	now  func() time.Time

	mu      sync.Mutex
	secrets map[string]string // nil: it was never read
	at      time.Time         // when it was asked for
}

// Document gives the secrets of one text, which read fetches: a JSON object
// {"NAME": "value"}. It is read when a secret is first needed, and again after a
// while, so that a value that changed is noticed; what is known stays where it
// cannot be read then. An empty value counts as none. nil for now: time.Now.
func Document(read func(context.Context) (string, error), now func() time.Time) Secrets {
	if now == nil {
		now = time.Now
	}
	d := &document{read: read, now: now}
	return d.secret
}

func (d *document) secret(ctx context.Context, name string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The wall clock: the other one may stand still while a sandbox is frozen.
	now := d.now().Round(0)
	age := now.Sub(d.at)
	if d.secrets == nil || age >= documentFresh || d.secrets[name] == "" && age >= documentAgain {
		if err := d.fetch(ctx); err != nil && d.secrets == nil {
			return "", fmt.Errorf("secret %s: %w", name, err)
		}
		d.at = now
	}
	if value := d.secrets[name]; value != "" {
		return value, nil
	}
	return "", fmt.Errorf("secret %s: %w (the secret of Secrets Manager that this server reads has no member of that name)", name, ErrNoSecret)
}

// fetch reads the text. The error holds nothing of it.
func (d *document) fetch(ctx context.Context) error {
	text, err := d.read(ctx)
	if err != nil {
		return err
	}
	var secrets map[string]string
	if json.Unmarshal([]byte(text), &secrets) != nil || secrets == nil {
		return errors.New(`expected JSON whose members are texts, such as {"MAILER": "…"}`)
	}
	d.secrets = secrets
	return nil
}

// Secret looks up a secret of the client's.
func (c *Client) Secret(ctx context.Context, name string) (string, error) {
	if c.secrets == nil {
		return "", fmt.Errorf("secret %s: %w (this server has none)", name, ErrNoSecret)
	}
	return c.secrets(ctx, name)
}

// scrubbed stands where a secret stood in what came back.
const scrubbed = "[secret]"

// scrubber takes secrets out of what a service sends back: some mirror the
// headers that they were called with.
type scrubber struct{ replacer *strings.Replacer }

func newScrubber(secrets []string) scrubber {
	if len(secrets) == 0 {
		return scrubber{}
	}
	var forms []string
	for _, s := range secrets {
		forms = append(forms, formsOf(s)...)
	}
	// Of two that begin alike the longer one has to be found.
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(forms))
	for _, form := range forms {
		pairs = append(pairs, form, scrubbed)
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

// formsOf are the ways in which texts hold other texts: as they are, and inside
// of JSON, of URLs and of Go's error messages.
func formsOf(secret string) []string {
	inner := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	return []string{
		secret, inner(string(exactjson.FromString(secret))), inner(strconv.Quote(secret)),
		url.QueryEscape(secret), url.PathEscape(secret),
	}
}

func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// value scrubs every text of a JSON value, keys included. Of two keys that
// become the same the first one stays.
func (s scrubber) value(v exactjson.Value) exactjson.Value {
	if s.replacer == nil {
		return v
	}
	switch v.Kind() {
	case exactjson.KindString:
		text, _ := v.Text()
		return exactjson.FromString(s.text(text))
	case exactjson.KindArray:
		var list []exactjson.Value
		for element := range v.Elements() {
			list = append(list, s.value(element))
		}
		return exactjson.Array(list)
	case exactjson.KindObject:
		var members []exactjson.Member
		seen := map[string]bool{}
		for key, value := range v.Members() {
			if key = s.text(key); !seen[key] {
				seen[key] = true
				members = append(members, exactjson.Member{Key: key, Value: s.value(value)})
			}
		}
		return exactjson.Object(members)
	}
	return v
}
