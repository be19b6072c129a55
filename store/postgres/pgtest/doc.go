// Package pgtest gives tests a real Postgres: URL is a fresh database on a
// server that the test binary starts for itself, PoolerURL the same through a
// transaction-pooling pgbouncer.
//
// The servers listen on loopback alone, on ports that were free, run as an
// unprivileged user, and end with the test binary, also when it is killed. A
// package that uses them has a TestMain that returns through Main. Where the
// binaries are missing a test fails and says what to install; it never skips.
//
// Environment: PERIGEE_TEST_POSTGRES is the URL of a server to use instead of
// starting one (its role must be allowed to create databases);
// PERIGEE_TEST_POSTGRES_FSYNC=off trades the truth of timings for speed.
//
// Start reading at URL, then cluster.start.
package pgtest
