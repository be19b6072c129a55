package metrics

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"perigee/engine/history"
	"perigee/store"
)

// Namespace and Dimension are where CloudWatch keeps the metrics, as the alarms
// in template.yaml look for them.
const (
	Namespace = "Perigee"
	Dimension = "Stack"
)

// The metrics; docs/operations.md lists them.
const (
	TickPasses         = "TickPasses"
	OldestDueSeconds   = "OldestDueSeconds"
	OldestReadySeconds = "OldestReadySeconds"
	ParkedExecutions   = "ParkedExecutions"
	TasksDispatched    = "TasksDispatched"
)

// events are the metrics that count an event type each.
var events = map[history.Type]string{
	history.TypeWorkflowCreated:      "ExecutionsStarted",
	history.TypeWorkflowCompleted:    "ExecutionsCompleted",
	history.TypeWorkflowFailed:       "ExecutionsFailed",
	history.TypeWorkflowCancelled:    "ExecutionsCancelled",
	history.TypeWorkflowTimedOut:     "ExecutionsTimedOut",
	history.TypeStepDispatched:       TasksDispatched, // with the result before it, by next
	history.TypeStepSucceeded:        "StepsSucceeded",
	history.TypeStepAttemptFailed:    "AttemptsFailed",
	history.TypeStepAttemptUncertain: "AttemptsUncertain",
}

// seconds are the metrics that are no counts: of several values in one call
// the largest is written.
var seconds = []string{OldestDueSeconds, OldestReadySeconds}

// Names lists all metrics, in order.
func Names() []string {
	names := slices.Concat([]string{TickPasses, OldestDueSeconds, OldestReadySeconds, ParkedExecutions, TasksDispatched},
		slices.Collect(maps.Values(events)))
	slices.Sort(names)
	return slices.Compact(names)
}

// Recorder counts. It is a watch.Watcher, and safe for concurrent use.
type Recorder struct {
	stack string
	w     io.Writer
	now   func() time.Time

	mu     sync.Mutex
	values map[string]float64
}

// New makes a recorder that writes lines to w, for an installation. now nil is
// time.Now.
func New(w io.Writer, stack string, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	return &Recorder{stack: stack, w: w, now: now, values: map[string]float64{}}
}

// Committed counts events and parked executions.
func (r *Recorder) Committed(c store.Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range c.Events {
		r.count(e)
	}
	for _, child := range c.Children {
		for _, e := range child.Events {
			r.count(e)
		}
	}
	if len(c.Events) == 0 && c.Head.ErrorCount > 0 {
		r.values[ParkedExecutions]++
	}
}

func (r *Recorder) count(e store.Event) {
	if name, ok := events[history.Type(e.Type)]; ok {
		r.values[name]++
	}
}

// Claimed counts tasks handed out.
func (r *Recorder) Claimed(c store.Claimed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[TasksDispatched] += float64(len(c.Tasks))
}

// Looked records how late the oldest work is. It is told even when it is zero:
// a tick that finds nothing is worth a metric, too.
func (r *Recorder) Looked(d store.Due) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[TickPasses]++
	r.age(OldestDueSeconds, d.NowMS, d.OldestDueMS)
	r.age(OldestReadySeconds, d.NowMS, d.OldestReady)
}

func (r *Recorder) age(name string, now, since int64) {
	age := 0.0
	if since != 0 {
		age = max(0, float64(now-since)/1000)
	}
	r.values[name] = max(r.values[name], age)
}

// Flush writes what was counted since the last flush, if anything, as one line.
// That a log cannot be written is nobody's to tell.
func (r *Recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.values) == 0 {
		return
	}
	line, err := json.Marshal(r.line())
	if err == nil {
		r.w.Write(append(line, '\n'))
	}
	clear(r.values)
}

// line is a log entry in embedded metric format.
func (r *Recorder) line() map[string]any {
	type metric struct{ Name, Unit string }
	entry := map[string]any{Dimension: r.stack}
	var list []metric
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		unit := "Count"
		if slices.Contains(seconds, name) {
			unit = "Seconds"
		}
		list = append(list, metric{name, unit})
		entry[name] = r.values[name]
	}
	entry["_aws"] = map[string]any{
		"Timestamp": r.now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": Namespace, "Dimensions": [][]string{{Dimension}}, "Metrics": list,
		}},
	}
	return entry
}
