package database

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestTokens_OneServesConnectionsForTenMinutes(t *testing.T) {
	now, signed := time.Unix(1_800_000_000, 0), 0
	tk := &tokens{now: func() time.Time { return now }, sign: func(_ context.Context, endpoint, user string) (string, error) {
		if endpoint != "db.internal:5432" || user != "app" {
			t.Errorf("signed for %s at %s", user, endpoint)
		}
		signed++
		return strings.Repeat("t", signed), nil
	}}
	c := toConnect(t)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "t"}, {9 * time.Minute, "t"}, {time.Minute, "tt"}, {time.Second, "tt"}} {
		now = now.Add(step.after)
		if err := tk.prepare(t.Context(), c); err != nil || c.Password != step.want {
			t.Errorf("after %v: password %q, %v; want %q", step.after, c.Password, err, step.want)
		}
	}
	// A server that has had enough of a token gets another.
	c.OnPgError(nil, &pgconn.PgError{Code: codeInvalidAuthorization, Severity: "FATAL"})
	if err := tk.prepare(t.Context(), c); err != nil || c.Password != "ttt" {
		t.Errorf("after a refusal: password %q, %v", c.Password, err)
	}
}

func TestTokens_WhatKeepsThemFromBeingMadeIsTold(t *testing.T) {
	tk := &tokens{sign: func(context.Context, string, string) (string, error) { return "", errors.New("no credentials") }}
	if err := tk.prepare(t.Context(), toConnect(t)); err == nil || !strings.Contains(err.Error(), "make a token for the database: no credentials") {
		t.Errorf("got %v", err)
	}
}

func TestSecret_IsReadOnceUntilItIsRefused(t *testing.T) {
	reads := 0
	s := &secret{id: "db", read: func(context.Context, string) (string, error) { reads++; return `{"username":"u","password":"p"}`, nil }}
	c := toConnect(t)
	for range 3 {
		if err := s.prepare(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	c.OnPgError(nil, &pgconn.PgError{Code: "42P01"})
	if err := s.prepare(t.Context(), c); err != nil || reads != 1 || c.User != "u" || c.Password != "p" {
		t.Errorf("%d reads, user %q, %v; want one read", reads, c.User, err)
	}
	c.OnPgError(nil, &pgconn.PgError{Code: codeInvalidPassword, Severity: "FATAL"})
	if err := s.prepare(t.Context(), c); err != nil || reads != 2 {
		t.Errorf("%d reads after a refusal, %v; want two", reads, err)
	}
}

func TestSecret_ItsTextIsNeverTold(t *testing.T) {
	for _, text := range []string{"", `{"username":"u"}`, `{"password":5,"x":"hunter2"}`, `{hunter2`} {
		s := &secret{id: "db", read: func(context.Context, string) (string, error) { return text, nil }}
		if err := s.prepare(t.Context(), toConnect(t)); err == nil || !strings.Contains(err.Error(), "secret db: expected") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	s := &secret{id: "db", read: func(context.Context, string) (string, error) { return "bare", nil }}
	if c := toConnect(t); s.prepare(t.Context(), c) != nil || c.Password != "bare" || c.User != "app" {
		t.Errorf("a bare password: %q for %q", c.Password, c.User)
	}
}

func TestRegional_EachRegionHasItsAuthorities(t *testing.T) {
	for _, region := range []string{"us-east-1", "eu-central-1", "ap-southeast-2", "sa-east-1"} {
		n := 0
		for rest := []byte(regional(region)); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if n++; !c.IsCA || !strings.HasPrefix(c.Subject.CommonName, "Amazon RDS "+region+" Root CA") || c.CheckSignatureFrom(c) != nil {
				t.Errorf("%s: %s is no authority of it", region, c.Subject)
			}
		}
		if n != 3 {
			t.Errorf("%s: %d authorities, want 3", region, n)
		}
	}
	if got := regional("mars-north-1"); got != "" {
		t.Errorf("an unknown region has %d bytes", len(got))
	}
}

func toConnect(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	c, err := pgx.ParseConfig("postgres://app@db.internal:5432/perigee")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
