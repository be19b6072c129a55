package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"perigee/store/postgres"
	"perigee/store/postgres/pgtest"
)

// A password that was changed while a process kept the old one costs a second
// try to connect, not a failed call.
func TestOpen_APasswordThatIsRefusedIsMadeAnewOnce(t *testing.T) {
	url := pgtest.URL(t)
	for _, c := range []struct {
		name  string
		wrong int // passwords that the server refuses
		works bool
	}{
		{"a new one", 1, true},
		{"none that it takes", 9, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := 0
			st, err := postgres.Open(t.Context(), postgres.Options{URL: url, BeforeConnect: func(_ context.Context, config *pgx.ConnConfig) error {
				if made++; made <= c.wrong {
					config.Password = "outdated"
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if err := st.Ping(t.Context()); (err == nil) != c.works {
				t.Errorf("ping after %d passwords: %v", made, err)
			}
			if made > 4 {
				t.Errorf("%d connections were tried", made)
			}
		})
	}
}
