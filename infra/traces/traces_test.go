package traces_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/engine/traceid"
	"perigee/infra/traces"
	"perigee/store"
	"perigee/store/sqlite"
)

// collector is a transport that keeps what it is sent.
type collector struct {
	mu     sync.Mutex
	calls  []*http.Request
	bodies [][]byte
	// answer replaces the answer, which is a plain 200.
	answer func(r *http.Request) (*http.Response, error)
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.calls, c.bodies = append(c.calls, r), append(c.bodies, body)
	c.mu.Unlock()
	if c.answer != nil {
		return c.answer(r)
	}
	return answered(http.StatusOK, "{}"), nil
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

func answered(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// shown is a span as it was read by OpenTelemetry's own types.
type shown struct {
	Trace, ID, Parent, Name string
	Kind                    tracepb.Span_SpanKind
	StartMS, EndMS          uint64
	Status                  tracepb.Status_StatusCode
	Attributes              map[string]string
}

// spans reads what was sent, in its order. What OTLP does not know is a fault.
func (c *collector) spans(t *testing.T) (list []shown) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.bodies {
		var data tracepb.TracesData
		if err := protojson.Unmarshal(withBase64Ids(t, body), &data); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		for _, resource := range data.ResourceSpans {
			if name := texts(resource.Resource.Attributes)["service.name"]; name != "perigee" {
				t.Errorf("service.name is %q", name)
			}
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					list = append(list, shown{
						Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
						Name: s.Name, Kind: s.Kind, Status: s.Status.GetCode(), Attributes: texts(s.Attributes),
						StartMS: s.StartTimeUnixNano / 1e6, EndMS: s.EndTimeUnixNano / 1e6,
					})
				}
			}
		}
	}
	return list
}

// withBase64Ids is the same text as protobuf's JSON has it: OTLP writes ids in hex.
func withBase64Ids(t *testing.T, body []byte) []byte {
	t.Helper()
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, n := range node {
				walk(n)
			}
		case map[string]any:
			for name, size := range map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8} {
				if text, ok := node[name].(string); ok {
					id, err := hex.DecodeString(text)
					if err != nil || len(id) != size {
						t.Errorf("%s is %q, want %d bytes in hex", name, text, size)
					}
					node[name] = base64.StdEncoding.EncodeToString(id)
				}
			}
			for _, n := range node {
				walk(n)
			}
		}
	}
	walk(tree)
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func texts(attributes []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[a.Key] = fmt.Sprint(v.IntValue)
		case *commonpb.AnyValue_BoolValue:
			m[a.Key] = fmt.Sprint(v.BoolValue)
		}
	}
	return m
}

// exporter is one that the test closes, or its end does.
func exporter(t *testing.T, o traces.Options) *traces.Exporter {
	t.Helper()
	o.Endpoint = "http://collector:4318"
	x := traces.New(o)
	t.Cleanup(func() { x.Close(context.Background()) })
	return x
}

// newEngine is an engine in memory that knows some definitions and one worker's
// session.
func newEngine(t *testing.T, o engine.Options, definitions ...string) (*engine.Engine, string) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	if _, _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for _, source := range definitions {
		if _, err := e.RegisterDefinition(t.Context(), []byte(source), definition.YAML); err != nil {
			t.Fatal(err)
		}
	}
	r, err := e.RegisterWorker(t.Context(), engine.RegisterRequest{
		WorkerID: "w1", Runtime: "go", Contracts: []store.Contract{{TaskName: "stock.pack", ContractVersion: "1.0.0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, r.SessionID
}

const ship = `
name: ship
version: "2.0.0"
tasks: { stock.pack: { version: "1.0.0" } }
steps: [ { id: pack, for: "${[1, 2]}", max_parallel: 1, task: stock.pack, retry: { max_attempts: 2, initial_interval: 0s } } ]
`

const order = `
name: order
version: "1.0.0"
steps: [ { id: ship, workflow: ship@2.0.0 } ]
`

func next(t *testing.T, e *engine.Engine, session string) engine.Assignment {
	t.Helper()
	p, err := e.Poll(t.Context(), engine.PollRequest{SessionID: session})
	if err != nil || len(p.Tasks) != 1 {
		t.Fatalf("polled %+v, %v; want one task", p, err)
	}
	return p.Tasks[0]
}

func report(t *testing.T, e *engine.Engine, r engine.Result) {
	t.Helper()
	answer, err := e.Results(t.Context(), engine.ResultsRequest{Results: []engine.Result{r}})
	if err != nil || !answer.Acks[0].Accepted {
		t.Fatalf("reported %+v, %v", answer, err)
	}
}

// One trace for a run with a child: each span below the one that it belongs to,
// and the worker's where the assignment says.
func TestExporter_SendsAFamilyAsOneTraceThatOTLPReads(t *testing.T) {
	var c collector
	x := exporter(t, traces.Options{Transport: &c, Namespace: "shop"})
	clock := int64(1_000)
	e, session := newEngine(t, engine.Options{Ended: x.Ended, Clock: func() int64 { return clock }}, ship, order)
	if _, err := e.Start(t.Context(), engine.StartRequest{Workflow: "order", ExecutionID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	clock = 2_000
	first := next(t, e, session)
	clock = 3_000
	report(t, e, engine.Result{Token: first.Token, Error: &history.TaskError{Code: "BUSY", Message: "password=hunter2", Retryable: true}})
	for _, at := range []int64{4_000, 6_000} {
		clock = at
		if _, err := e.Tick(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		a := next(t, e, session)
		clock = at + 1_000
		report(t, e, engine.Result{Token: a.Token, Output: exactjson.Value(`{"card":"4111"}`)})
	}
	x.Close(t.Context())

	trace := traceid.Trace("o-1")
	child := map[string]string{"perigee.workflow.name": "ship", "perigee.workflow.version": "2.0.0", "perigee.execution.id": "o-1.ship"}
	parent := map[string]string{"perigee.workflow.name": "order", "perigee.workflow.version": "1.0.0", "perigee.execution.id": "o-1"}
	with := func(base map[string]string, pairs ...string) map[string]string {
		m := map[string]string{}
		for k, v := range base {
			m[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	packed := func(unit string, number uint32, start, end uint64, pairs ...string) shown {
		return shown{
			Trace: trace, ID: traceid.Attempt("o-1.ship", unit, number), Parent: traceid.Execution("o-1.ship"),
			Name: "pack", Kind: tracepb.Span_SPAN_KIND_CLIENT, StartMS: start, EndMS: end,
			Attributes: with(with(child, "perigee.task.name", "stock.pack", "perigee.worker.id", "w1", "perigee.unit", unit,
				"perigee.attempt.number", fmt.Sprint(number)), pairs...),
		}
	}
	failed := packed("pack[0]", 1, 2_000, 3_000, "perigee.attempt.outcome", "failed", "error.type", "BUSY")
	failed.Status = tracepb.Status_STATUS_CODE_ERROR
	want := []shown{
		failed,
		packed("pack[0]", 2, 4_000, 5_000, "perigee.attempt.outcome", "succeeded"),
		packed("pack[1]", 1, 6_000, 7_000, "perigee.attempt.outcome", "succeeded"),
		{
			Trace: trace, ID: traceid.Execution("o-1.ship"), Parent: traceid.Attempt("o-1", "ship", 1), Name: "ship",
			Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartMS: 1_000, EndMS: 7_000,
			Attributes: with(child, "perigee.execution.status", "COMPLETED", "perigee.parent.execution.id", "o-1"),
		},
		{
			Trace: trace, ID: traceid.Attempt("o-1", "ship", 1), Parent: traceid.Execution("o-1"), Name: "ship",
			Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartMS: 1_000, EndMS: 7_000,
			Attributes: with(parent, "perigee.unit", "ship", "perigee.attempt.number", "1", "perigee.attempt.outcome", "succeeded"),
		},
		{
			Trace: trace, ID: traceid.Execution("o-1"), Name: "order",
			Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartMS: 1_000, EndMS: 7_000,
			Attributes: with(parent, "perigee.execution.status", "COMPLETED"),
		},
	}
	if diff := cmp.Diff(want, c.spans(t), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if want := "00-" + failed.Trace + "-" + failed.ID + "-01"; first.TraceParent != want {
		t.Errorf("the worker continues %s, the attempt is %s", first.TraceParent, want)
	}
	for _, body := range c.bodies {
		for _, secret := range []string{"hunter2", "4111"} {
			if strings.Contains(string(body), secret) {
				t.Errorf("%q was sent", secret)
			}
		}
		if !strings.Contains(string(body), `{"key":"service.namespace","value":{"stringValue":"shop"}}`) {
			t.Errorf("no namespace in %s", body)
		}
	}
	if s := x.Stats(); s != (traces.Stats{Sent: 6}) {
		t.Errorf("%+v", s)
	}
	if url := c.calls[0].URL.String(); url != "http://collector:4318/v1/traces" {
		t.Errorf("sent to %s", url)
	}
}

func TestExporter_EndsThatAreNoSuccess(t *testing.T) {
	var c collector
	x := exporter(t, traces.Options{Transport: &c})
	long := strings.Repeat("ä", 200)
	x.Ended([]engine.Ended{
		{ExecutionID: "a", RootID: "a", Status: history.TimedOut},
		{ExecutionID: "b", RootID: "b", Status: history.Cancelled},
		{ExecutionID: "c", RootID: "c", Status: history.Failed, ErrorCode: long},
		// A child from before roots were known.
		{ExecutionID: "p.d", RootID: "p.d", Status: history.Completed, Parent: &history.ParentRef{ExecutionID: "p", Step: "d"}},
		{ExecutionID: "e", RootID: "e", StartMS: 5, EndMS: 6, Attempt: &engine.EndedAttempt{
			Unit: "compensate:pack[3]", Number: 2, Redelivery: true, Outcome: engine.AttemptCancelled,
		}},
	})
	x.Close(t.Context())
	var got []string
	for _, s := range c.spans(t) {
		got = append(got, fmt.Sprint(s.Name, "|", s.Status, "|", s.Attributes["error.type"], "|", s.Parent, "|", s.Attributes["perigee.attempt.redelivery"]))
	}
	want := []string{
		"|STATUS_CODE_ERROR|TIMED_OUT||",
		"|STATUS_CODE_UNSET|||",
		"|STATUS_CODE_ERROR|" + strings.Repeat("ä", 128) + "||",
		"|STATUS_CODE_UNSET|||",
		"compensate:pack|STATUS_CODE_UNSET||" + traceid.Execution("e") + "|true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// ends are n executions that ended.
func ends(n int) []engine.Ended {
	list := make([]engine.Ended, n)
	for i := range list {
		id := fmt.Sprintf("e%d", i)
		list[i] = engine.Ended{ExecutionID: id, RootID: id, Workflow: "order", Status: history.Completed, StartMS: 1, EndMS: 2}
	}
	return list
}
