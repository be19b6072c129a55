package storetest

import (
	"testing"

	"perigee/store"
)

var tokenRules = []rule{
	{"AreFoundByHash", func(t *testing.T, s store.Store) {
		a := store.Token{Name: "b-team", Hash: "h1", Role: "worker", WorkerIDs: []string{"w1", "w2"}, Tasks: []string{"payments.*"}, CreatedAtMS: epoch}
		b := store.Token{Name: "Admin", Hash: "h2", Role: "admin", CreatedAtMS: epoch + 1}
		must(t, s.PutToken(t.Context(), a))
		must(t, s.PutToken(t.Context(), b))
		equal(t, "token", a, got(s.TokenByHash(t.Context(), "h1"))(t))
		equal(t, "token", b, got(s.TokenByHash(t.Context(), "h2"))(t))
		_, err := s.TokenByHash(t.Context(), "h3")
		wantError(t, err, store.ErrNotFound)
		equal(t, "by name", []store.Token{b, a}, got(s.Tokens(t.Context()))(t))
	}},
	{"AreReplacedByName", func(t *testing.T, s store.Store) {
		must(t, s.PutToken(t.Context(), store.Token{Name: "ci", Hash: "h1", Role: "admin", WorkerIDs: []string{"w"}, CreatedAtMS: epoch}))
		rotated := store.Token{Name: "ci", Hash: "h2", Role: "reader", CreatedAtMS: epoch + 1}
		must(t, s.PutToken(t.Context(), rotated))
		equal(t, "tokens", []store.Token{rotated}, got(s.Tokens(t.Context()))(t))
		_, err := s.TokenByHash(t.Context(), "h1")
		wantError(t, err, store.ErrNotFound)
	}},
	{"AreDeletedByName", func(t *testing.T, s store.Store) {
		must(t, s.PutToken(t.Context(), store.Token{Name: "ci", Hash: "h1", Role: "admin", CreatedAtMS: epoch}))
		must(t, s.DeleteToken(t.Context(), "ci"))
		wantError(t, s.DeleteToken(t.Context(), "ci"), store.ErrNotFound)
		_, err := s.TokenByHash(t.Context(), "h1")
		wantError(t, err, store.ErrNotFound)
	}},
}
