package store_test

import (
	"errors"
	"testing"

	"perigee/store"
)

func TestCheckVersion_ANewerSchemaSaysWhomItWorksWith(t *testing.T) {
	for _, c := range []struct {
		version, release, oldest int64
		works                    bool
	}{
		{30, 30, 0, true},
		{30, 30, 31, true}, // what a newer release has said before it migrates
		{29, 30, 0, false},
		{31, 30, 0, false},
		{31, 30, 30, true},
		{31, 30, 26, true},
		{31, 30, 31, false},
	} {
		if err := store.CheckVersion(c.version, c.release, c.oldest); errors.Is(err, store.ErrSchema) == c.works {
			t.Errorf("schema %d, which works with %d and later, and release %d: got %v", c.version, c.oldest, c.release, err)
		}
	}
}
