package blackbox_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"perigee/store/postgres/pgtest"
)

var (
	targetName = flag.String("target", "inprocess", "what serves: inprocess, process (the perigee binary) or lambda (the functions, on Postgres)")
	databases  = flag.String("databases", "sqlite,postgres,pgbouncer", "the kinds of database to run on")
	soak       = flag.Duration("soak", 0, "how long TestSoak kills and restarts; 0: for a few kills")
)

// fullScale says that tests named TestScale… run at full size; see .ci/scale.
var fullScale = os.Getenv("PERIGEE_SCALE") == "full"

// size is a test's size for every day, or its full one.
func size(daily, full int) int {
	if fullScale {
		return full
	}
	return daily
}

// atOnce is how many tests run side by side. They wait for time-outs more than
// they compute.
const atOnce = "6"

// patience bounds every wait for something that should happen at once. It is
// long because it only ever passes in full where a test fails.
const patience = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(atOnce); err != nil {
			panic(err)
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	defer removeBinary()
	return pgtest.Main(m)
}
