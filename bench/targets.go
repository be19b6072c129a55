package main

// Names of figures that are compared with others. A limit's name is that of the
// figure behind "limit".
const (
	s1 = "S1 sequential-3"
	s2 = "S2 single latency"
	s3 = "S3 fan-out-100"
	s4 = "S4 sequential-1000"

	s4Last  = "S4 last 100 steps"
	s4First = "S4 first 100 steps"

	wide      = "fan-out-10000"
	wideLast  = "fan-out-10000 last 1000 elements"
	wideFirst = "fan-out-10000 first 1000 elements"

	many    = "S1 with 128 at once"
	writers = "signals by 16 writers to one execution"

	workflowCommits = "commits per 3-step workflow"
	workflowWAL     = "WAL per 3-step workflow"
	fanCommits      = "commits of a fan-out of 100"

	foldTime    = "fold of stored events"
	decodeTime  = "decoding of stored events"
	replayTime  = "fold of a history's JSON"
	readTime    = "decoding of the same JSON"
	roundTime   = "decide round in a 20-step workflow"
	celTime     = "simple CEL evaluation"
	warmLate    = "warm call at 10000 events"
	warmEarly   = "warm call at 100 events"
	coldFull    = "cold call at 10000 events"
	coldHalf    = "cold call at 5000 events"
	callBytes   = "memory of a call"
	callAllocs  = "allocations of a call"
	devResident = "resident after 10000 executions"
	devEarlier  = "resident after 5000 executions"
)

func limit(name string) string { return "limit " + name }
func dbos(name string) string  { return "dbos " + name }
func floor(name string) string { return "floor " + name }

// limits say with what of the same run a figure is compared.
var limits = map[string]string{
	s1: limit(s1), s2: limit(s2), s3: limit(s3), s4: limit(s4), many: limit(s1), writers: limit(writers),
	s4Last: s4First, wideLast: wideFirst, foldTime: decodeTime, replayTime: readTime, roundTime: celTime, warmLate: warmEarly, coldFull: coldHalf,
}

// target is a bound on a figure, or on its ratio to another of the same run.
type target struct {
	name, of, store string
	atLeast         bool // else at most
	bound           float64
}

// targets are what the project has set itself.
var targets = []target{
	{s1, limit(s1), "postgres", true, 0.5},
	{s1, limit(s1), "sqlite", true, 0.5},
	{s1, floor(s1), "postgres", true, 0.5},
	{s1, floor(s1), "sqlite", true, 0.5},
	{s1, dbos(s1), "postgres", true, 1.5},
	{s1, dbos(s1), "sqlite", true, 1.5},
	{s2, floor(s2), "postgres", false, 1.6},
	{s2, floor(s2), "sqlite", false, 1.8},
	{s2, dbos(s2), "postgres", false, 0.8},
	{s3, dbos(s3), "postgres", false, 0.5},
	{s3, dbos(s3), "sqlite", false, 1},
	{s4, dbos(s4), "postgres", false, 0.6},
	{s4Last, s4First, "postgres", false, 1.1},
	{s4Last, s4First, "sqlite", false, 1.1},
	{wide, "", "postgres", false, 20},
	{wide, "", "sqlite", false, 20},
	{wideLast, wideFirst, "postgres", false, 1.3},
	{wideLast, wideFirst, "sqlite", false, 1.3},
	{many, s1, "postgres", true, 1.2},
	{many, s1, "sqlite", true, 1.5},
	{writers, limit(writers), "postgres", true, 0.7},
	{writers, limit(writers), "sqlite", true, 0.7},
	{workflowCommits, "", "postgres", false, 5},
	{workflowWAL, "", "postgres", false, 10_000},
	{fanCommits, "", "postgres", false, 204},
	{fanCommits, "", "sqlite", false, 204},
	{replayTime, readTime, "", false, 1.3},
	{foldTime, decodeTime, "", false, 1.3},
	{roundTime, celTime, "", false, 200},
	{warmLate, warmEarly, "sqlite", false, 2},
	{coldFull, coldHalf, "sqlite", false, 4},
	{callBytes, "", "", false, 64 << 10},
	{callAllocs, "", "", false, 400},
	{devResident, "", "sqlite", false, 150},
	{devResident, devEarlier, "sqlite", false, 1.1},
}
