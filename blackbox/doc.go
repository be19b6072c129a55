// Package blackbox tests Perigee from outside: a server on a real database, and
// what anyone can see of it through HTTP. Each test is named for the fault that
// it keeps out; most are faults that engines of this kind have shipped.
//
// Every test runs on SQLite, on Postgres and on Postgres behind a proxy that
// pools transactions. At its end no server may have logged an error, every
// history is gapless, and `doctor` finds every projection to be what its
// history says.
//
// A test asks for a server and gets one, see target.go; what it is made of is
// chosen by -target: "inprocess" (the default: the engine behind its HTTP
// handler in the test's own process) or "process" (the perigee binary). Tests
// that kill take the binary in any case, tests that turn a clock the former.
//
//	go test ./blackbox                     all of it, in a size for every day
//	go test ./blackbox -databases sqlite   on one kind of database
//	go test ./blackbox -target process     against the binary
//	make scale                             TestScale… at full size
//	make soak                              kills and restarts for SOAKTIME
//
// Start reading at everyDatabase in env_test.go, then any test.
package blackbox
