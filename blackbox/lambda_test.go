package blackbox_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"perigee/local/lambda/lambdatest"
)

// functions builds them as for Lambda, once for all tests.
var functions = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "perigee-functions-")
	if err != nil {
		return "", err
	}
	functionsDir = dir
	return dir, lambdatest.Functions(context.Background(), dir)
})

var functionsDir string

// lambdas serves with the functions under `perigee lambda`, as processes that
// stand still between calls; every third call meets a new one.
type lambdas struct{}

func (lambdas) start(t *testing.T, db testDatabase, s settings) server {
	t.Helper()
	if db.kind == "sqlite" {
		t.Fatal("the functions need Postgres; run with -databases postgres,pgbouncer")
	}
	dir, err := functions()
	if err != nil {
		t.Fatal(err)
	}
	return startProcess(t, []string{"lambda", "--json", "--listen", "127.0.0.1:0", "--functions", dir, "--concurrency", "60", "--churn", "0.3"}, db, s)
}
