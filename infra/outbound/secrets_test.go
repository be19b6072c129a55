package outbound_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perigee/infra/outbound"
)

// vault is a text of secrets with a clock.
type vault struct {
	text  string
	err   error
	reads int
	now   time.Time
}

func (v *vault) secrets() outbound.Secrets {
	v.now = time.Unix(1_800_000_000, 0)
	return outbound.Document(func(context.Context) (string, error) {
		v.reads++
		return v.text, v.err
	}, func() time.Time { return v.now })
}

func (v *vault) want(t *testing.T, secrets outbound.Secrets, name, want string) {
	t.Helper()
	if got, err := secrets(t.Context(), name); got != want || err != nil {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

func TestDocument_IsReadOnceAndAgainAfterAWhile(t *testing.T) {
	v := &vault{text: `{"A": "one", "B": "two"}`}
	secrets := v.secrets()
	if v.reads != 0 {
		t.Error("it was read before a secret was needed")
	}
	v.want(t, secrets, "A", "one")
	v.text = `{"A": "three"}`
	v.now = v.now.Add(4 * time.Minute)
	v.want(t, secrets, "B", "two")
	if v.reads != 1 {
		t.Errorf("it was read %d times", v.reads)
	}
	v.now = v.now.Add(time.Minute)
	v.want(t, secrets, "A", "three")
	// What cannot be read now was right a while ago.
	v.err = errors.New("away")
	v.now = v.now.Add(time.Hour)
	v.want(t, secrets, "A", "three")
}

func TestDocument_ANameThatIsMissingIsLookedForAgainSoon(t *testing.T) {
	v := &vault{text: `{"A": "one", "B": ""}`}
	secrets := v.secrets()
	for range 3 {
		if _, err := secrets(t.Context(), "B"); !errors.Is(err, outbound.ErrNoSecret) || !strings.Contains(err.Error(), "secret B") {
			t.Errorf("got %v", err)
		}
	}
	if v.reads != 1 {
		t.Errorf("it was read %d times at one moment", v.reads)
	}
	v.text = `{"B": "new"}`
	v.now = v.now.Add(10 * time.Second)
	v.want(t, secrets, "B", "new")
}

func TestDocument_WhatCannotBeReadMayBeGoneAtTheNextTry(t *testing.T) {
	for text, err := range map[string]error{"": errors.New("throttled"), `hunter2`: nil, `{"A": {"hunter2": 1}}`: nil, `null`: nil} {
		v := &vault{text: text, err: err}
		secrets := v.secrets()
		if _, err := secrets(t.Context(), "A"); err == nil || errors.Is(err, outbound.ErrNoSecret) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", text, err)
		}
		v.text, v.err = `{"A": "one"}`, nil
		v.want(t, secrets, "A", "one")
	}
}
