package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perigee/store"
	"perigee/store/sqlite"
)

func TestOpen_SaysInOneLineWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database, but notes\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"folder that is not there", filepath.Join(dir, "none", "perigee.db"), "cannot be opened or created; check that its folder exists"},
		{"a folder", dir, "cannot be opened or created"},
		{"a text file", text, "is not a SQLite database; name another file"},
	} {
		_, err := sqlite.Open(t.Context(), sqlite.Options{Path: c.path})
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", c.name, err)
		}
	}
}

func TestOpen_ChecksItsOptions(t *testing.T) {
	for want, o := range map[string]sqlite.Options{
		"Path is empty":  {},
		"BusyTimeout is": {Path: sqlite.Memory, BusyTimeout: -1},
		"ReadConns is":   {Path: sqlite.Memory, ReadConns: -1},
	} {
		if _, err := sqlite.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestOpen_TakesAnyFileName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e&f=ü.db")
	s := migrated(t, sqlite.Options{Path: path})
	if err := s.PutToken(t.Context(), store.Token{Name: "n", Hash: "h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	again := open(t, sqlite.Options{Path: path})
	if _, err := again.TokenByHash(t.Context(), "h"); err != nil {
		t.Error(err)
	}
}

func TestOpen_KeepsWhatWasCommitted(t *testing.T) {
	path := newPath(t)
	for _, name := range []string{"first", "second"} {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.PutToken(t.Context(), store.Token{Name: name, Hash: name}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := open(t, sqlite.Options{Path: path}).Tokens(t.Context())
	if err != nil || len(tokens) != 2 {
		t.Errorf("want both tokens, got %v, %v", tokens, err)
	}
}

func TestMemory_IsOneDatabaseForEachStore(t *testing.T) {
	first, second := migrated(t, sqlite.Options{Path: sqlite.Memory}), migrated(t, sqlite.Options{Path: sqlite.Memory})
	if err := first.PutToken(t.Context(), store.Token{Name: "n", Hash: "h"}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.TokenByHash(t.Context(), "h"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("want ErrNotFound, got %v", err)
	}
}

func TestClock_IsTheStores(t *testing.T) {
	s := migrated(t, sqlite.Options{Path: sqlite.Memory, Clock: func() int64 { return 4_711 }})
	loaded, err := s.Load(t.Context(), store.LoadRequest{ID: "e"})
	if err != nil || loaded.NowMS != 4_711 {
		t.Errorf("want the clock's moment, got %d, %v", loaded.NowMS, err)
	}
}

func TestCheckSchema_SaysWhatToDo(t *testing.T) {
	s := open(t, sqlite.Options{Path: sqlite.Memory})
	if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "run `perigee migrate`") {
		t.Errorf("want the command to run, got %v", err)
	}
}
