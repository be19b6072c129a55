package pgtest

import (
	"context"
	"testing"

	"perigee/store/postgres"
)

// Migrated is URL with this release's schema.
func Migrated(t testing.TB) string {
	t.Helper()
	return Template(t, "migrated", func(url string) error {
		s, err := postgres.Open(context.Background(), postgres.Options{URL: url})
		if err != nil {
			return err
		}
		defer s.Close()
		_, _, err = s.Migrate(context.Background())
		return err
	}, "goose_db_version")
}
