package storetest

import (
	"sync"
	"testing"

	"perigee/store"
)

func newDefinition(name, version string, createdAt int64) store.Definition {
	return store.Definition{
		Name: name, Version: version, Hash: "hash of " + name + "@" + version, Canonical: `{"name":"` + name + `"}`,
		Children: map[string]string{"sub@1": "h1"}, Tasks: map[string]string{"a.task": "1.0.0"}, Extensions: "cel/1", CreatedAtMS: createdAt,
	}
}

var definitionRules = []rule{
	{"AreFoundByHash", func(t *testing.T, s store.Store) {
		want := newDefinition("order", "1", epoch)
		stored, created, err := s.PutDefinition(t.Context(), want)
		must(t, err)
		equal(t, "created", true, created)
		equal(t, "stored", want, stored)
		equal(t, "found", want, got(s.Definition(t.Context(), want.Hash))(t))
		_, err = s.Definition(t.Context(), "none")
		wantError(t, err, store.ErrNotFound)
	}},
	{"AreNeverReplaced", func(t *testing.T, s store.Store) {
		first := newDefinition("order", "1", epoch)
		_, _, err := s.PutDefinition(t.Context(), first)
		must(t, err)
		second := first
		second.Hash, second.Canonical = "another", `{"name":"changed"}`
		stored, created, err := s.PutDefinition(t.Context(), second)
		must(t, err)
		equal(t, "created", false, created)
		equal(t, "stored", first, stored)
		_, err = s.Definition(t.Context(), "another")
		wantError(t, err, store.ErrNotFound)
	}},
	{"AreCreatedOnceAmongMany", func(t *testing.T, s store.Store) {
		const callers = 8
		created := make([]bool, callers)
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				d, isNew, err := s.PutDefinition(t.Context(), newDefinition("order", "1", epoch))
				if err != nil || d.Name != "order" {
					t.Errorf("stored %+v, %v", d, err)
				}
				created[i] = isNew
			})
		}
		group.Wait()
		count := 0
		for _, isNew := range created {
			if isNew {
				count++
			}
		}
		equal(t, "created", 1, count)
	}},
	{"AreListedInOrderOfCreation", func(t *testing.T, s store.Store) {
		a, b, c, d := newDefinition("order", "10", epoch+1), newDefinition("order", "9", epoch+2), newDefinition("Refund", "1", epoch+3), newDefinition("order", "11", epoch)
		for _, definition := range []store.Definition{a, b, c, d} {
			_, _, err := s.PutDefinition(t.Context(), definition)
			must(t, err)
		}
		for _, definition := range []*store.Definition{&a, &b, &c, &d} {
			definition.Canonical = ""
		}
		equal(t, "of one name", []store.Definition{d, a, b}, got(s.Definitions(t.Context(), "order"))(t))
		equal(t, "of all", []store.Definition{c, d, a, b}, got(s.Definitions(t.Context(), ""))(t))
		equal(t, "of none", 0, len(got(s.Definitions(t.Context(), "none"))(t)))
	}},
	{"AreRetired", func(t *testing.T, s store.Store) {
		d := newDefinition("order", "1", epoch)
		_, _, err := s.PutDefinition(t.Context(), d)
		must(t, err)
		for range 2 {
			must(t, s.RetireDefinition(t.Context(), "order", "1"))
			equal(t, "retired", true, got(s.Definition(t.Context(), d.Hash))(t).Retired)
		}
		equal(t, "listed", true, got(s.Definitions(t.Context(), "order"))(t)[0].Retired)
		wantError(t, s.RetireDefinition(t.Context(), "order", "2"), store.ErrNotFound)
	}},
}
