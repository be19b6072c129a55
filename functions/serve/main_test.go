package serve_test

import (
	"os"
	"testing"

	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
