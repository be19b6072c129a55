package decide_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

var update = flag.Bool("update", false, "write what the scenarios gave as what they expect")

// TestScenarios runs each file of testdata/scenarios: a definition, commands
// and the events that they must give. A file is named after the rule that it
// shows; -update rewrites what is expected, to be reviewed as a diff.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			runScenario(t, file)
		})
	}
}

func runScenario(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, children: map[string]*definition.Definition{}, now: epoch}
	var commands, want string
	for i, f := range archive.Files {
		switch {
		case f.Name == "commands":
			commands = string(f.Data)
		case f.Name == "events":
			want = string(f.Data)
			if *update {
				defer func() {
					archive.Files[i].Data = []byte(s.out.String())
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Error(err)
					}
				}()
			}
		case strings.HasSuffix(f.Name, ".yaml"):
			s.define(f.Name, f.Data)
		default:
			t.Fatalf("%s: unknown part %q", file, f.Name)
		}
	}
	for line := range strings.Lines(commands) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			s.command(line)
		}
	}
	if diff := cmp.Diff(want, s.out.String()); diff != "" && !*update {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

const epoch = 1_800_000_000_000

// scenario is an execution under test. Its log has a line for each command,
// each event (time since the start, type, members) and the next wake-up.
type scenario struct {
	t        *testing.T
	program  decide.Program
	children map[string]*definition.Definition
	machine  *decide.Machine
	taken    [][2]string // ids that exist, and whose they are
	now      int64
	out      strings.Builder
}

// define takes a definition; main.yaml (or the only one) is what runs, others
// are children.
func (s *scenario) define(name string, source []byte) {
	d, faults := definition.Parse(source, definition.YAML)
	if d == nil {
		s.t.Fatalf("%s: %v", name, faults)
	}
	if name == "child.yaml" {
		s.children[d.Name+"@"+d.Version] = d
		return
	}
	s.program = decide.Program{Definition: d, Children: s.children, Limits: decide.Limits{
		MaxFanOut: 10_000, MaxHistoryEvents: 50_000, MaxPayloadBytes: 1 << 20, MaxJoinBytes: 16 << 20,
		MaxRedeliveries: 3, CancelGraceMS: 600_000, DefaultAttemptTimeoutMS: 86_400_000,
	}}
}

func (s *scenario) command(line string) {
	fmt.Fprintf(&s.out, "> %s\n", line)
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "limit":
		s.limit(rest)
		return
	case "later":
		s.now += s.number(rest)
		return
	case "taken":
		id, whose, _ := strings.Cut(rest, " ")
		s.taken = append(s.taken, [2]string{id, whose})
		return
	}
	if s.machine == nil {
		s.machine = decide.New(s.program, history.New("e"))
	}
	s.machine = s.machine.Clone()
	s.machine.At(s.now)
	for _, t := range s.taken {
		s.machine.TakenChild(t[0], t[1] == "ours")
	}
	s.apply(verb, rest)
	more := s.machine.Run()
	s.report(s.machine.Records())
	for i, c := range s.machine.Children() {
		if i < 3 {
			fmt.Fprintf(&s.out, "         child %s for %s runs %s with %s\n", c.ID, c.Unit, c.Name, c.Input)
		}
	}
	if n := len(s.machine.Children()); n > 3 {
		fmt.Fprintf(&s.out, "         %d children in all\n", n)
	}
	switch wake, ok := s.machine.Wake(); {
	case more:
		s.out.WriteString("         more\n")
	case ok:
		fmt.Fprintf(&s.out, "         wake %s\n", s.since(wake))
	}
}

// report writes events, and of a long row of one type the first and the last.
func (s *scenario) report(records []history.Record) {
	for len(records) > 0 {
		row := 1
		for row < len(records) && records[row].Event.Type() == records[0].Event.Type() {
			row++
		}
		for i, r := range records[:row] {
			switch {
			case row < 12 || i < 2 || i == row-1:
				fields := string(history.AppendFields(nil, r.Event))
				if len(fields) > 1000 {
					fields = fmt.Sprintf("%.100s… %d bytes", fields, len(fields))
				}
				fmt.Fprintf(&s.out, "%8s %s %s\n", s.since(r.TimestampMS), r.Event.Type(), fields)
			case i == 2:
				fmt.Fprintf(&s.out, "         … %d more\n", row-3)
			}
		}
		records = records[row:]
	}
}

func (s *scenario) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scenario) since(ms int64) string { return fmt.Sprintf("+%d", ms-epoch) }

// apply runs one command:
//
//	start INPUT · run · wait MS · dispatch UNIT TOKEN · complete UNIT TOKEN OUTPUT
//	fail UNIT TOKEN CODE [final] [after=MS] · refuse UNIT TOKEN CODE
//	lost UNIT TOKEN REASON · signal NAME PAYLOAD · cancel REASON
//	child UNIT completed|failed|cancelled|timed_out|missing [VALUE]
//	progress UNIT TOKEN DETAILS · query NAME · row UNIT
//
// Three more make no call: limit NAME N; later MS, which only moves the clock;
// and taken ID ours|others, an id that a child's creation will meet.
func (s *scenario) apply(verb, rest string) {
	args := strings.SplitN(rest, " ", 3)
	for len(args) < 3 {
		args = append(args, "")
	}
	m := s.machine
	switch verb {
	case "start":
		d := s.program.Definition
		m.Create(history.WorkflowCreated{Workflow: d.Name, Version: d.Version, DefinitionHash: "sha256:0", Input: s.value(rest)})
	case "run":
	case "wait":
		s.now += s.number(rest)
		m.At(s.now)
	case "dispatch":
		s.dispatch(args[0], args[1])
	case "complete":
		s.ack(m.Result(args[0], args[1], decide.Result{Output: s.value(args[2])}))
	case "fail":
		s.ack(m.Result(args[0], args[1], s.failure(args[2])))
	case "refuse":
		s.ack(m.Result(args[0], args[1], decide.Result{Refused: &history.TaskError{Code: args[2], Message: "said the server"}}))
	case "lost":
		m.Lost(args[0], args[1], args[2])
	case "signal":
		m.Signal(args[0], s.value(args[1]), args[2])
	case "cancel":
		m.Cancel(rest)
	case "child":
		s.child(args[0], args[1], args[2])
	case "progress":
		fmt.Fprintf(&s.out, "         current %t\n", m.Progress(args[0], args[1], s.value(args[2])))
	case "query":
		value, declared, fail := m.Query(rest)
		switch {
		case !declared:
			s.out.WriteString("         not declared\n")
		case fail != nil:
			fmt.Fprintf(&s.out, "         fails: %s %s\n", fail.Code, fail.Message)
		default:
			fmt.Fprintf(&s.out, "         %s\n", value)
		}
	case "row":
		row, ok := m.Row(rest)
		if row.QueueDueMS > 0 {
			row.QueueDueMS -= epoch
		}
		fmt.Fprintf(&s.out, "         row %t startable %t at most once %t %+v\n", ok, m.Startable(rest), m.AtMostOnce(rest), row)
	default:
		s.t.Fatalf("unknown command %q", verb)
	}
}

func (s *scenario) limit(text string) {
	name, value, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(value)
	if err != nil {
		s.t.Fatal(err)
	}
	l := &s.program.Limits
	switch name {
	case "max_history_events":
		l.MaxHistoryEvents = uint64(n)
	case "max_fan_out":
		l.MaxFanOut = n
	case "max_payload_bytes":
		l.MaxPayloadBytes = n
	case "max_join_bytes":
		l.MaxJoinBytes = n
	case "max_redeliveries":
		l.MaxRedeliveries = n
	case "default_attempt_timeout_ms":
		l.DefaultAttemptTimeoutMS = int64(n)
	case "cancel_grace_ms":
		l.CancelGraceMS = int64(n)
	case "http_request":
		l.HTTPRequest = n == 1
	default:
		s.t.Fatalf("unknown limit %q", name)
	}
}

func (s *scenario) dispatch(unit, token string) {
	row, ok := s.machine.Row(unit)
	if !ok {
		s.t.Fatalf("%s has no row in the queue", unit)
	}
	e := history.StepDispatched{Token: token, WorkerID: "w", WorkerSession: "s"}
	if row.TimeoutMS > 0 {
		deadline := s.now + row.TimeoutMS
		e.DeadlineMS = &deadline
	}
	if !s.machine.Dispatch(unit, e) {
		s.t.Fatalf("%s is not ready", unit)
	}
}

func (s *scenario) ack(a decide.Ack) {
	if a.Accepted {
		s.out.WriteString("         accepted\n")
	} else {
		fmt.Fprintf(&s.out, "         refused: %s\n", a.Reason)
	}
}

func (s *scenario) failure(text string) decide.Result {
	fields := strings.Fields(text)
	r := decide.Result{Error: &history.TaskError{Code: fields[0], Message: "said the worker", Retryable: true}}
	for _, f := range fields[1:] {
		if f == "final" {
			r.Error.Retryable = false
		} else if after, ok := strings.CutPrefix(f, "after="); ok {
			ms := s.number(after)
			r.RetryAfterMS = &ms
		}
	}
	return r
}

func (s *scenario) child(unit, how, value string) {
	end := decide.ChildEnd{Workflow: "kid", Output: s.value(value)}
	switch how {
	case "completed":
		end.Status = history.Completed
	case "failed":
		end.Status = history.Failed
		end.Error = &history.TaskError{Code: value, Message: "said the child"}
	case "cancelled":
		end.Status = history.Cancelled
	case "timed_out":
		end.Status = history.TimedOut
	}
	fmt.Fprintf(&s.out, "         taken in %t\n", s.machine.ChildEnded(unit, history.ChildID("e", unit), end))
}

func (s *scenario) value(text string) exactjson.Value {
	if text == "" {
		return ""
	}
	v, err := exactjson.Parse([]byte(text))
	if err != nil {
		return exactjson.FromString(text)
	}
	return v
}

// TestChildToken_IsTheHashOfItsSession keeps the form that histories hold.
func TestChildToken_IsTheHashOfItsSession(t *testing.T) {
	sum := sha256.Sum256([]byte("child:p.step"))
	if diff := cmp.Diff(hex.EncodeToString(sum[:]), decide.ChildToken("p.step")); diff != "" {
		t.Error(diff)
	}
}
