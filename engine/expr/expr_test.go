package expr

import "testing"

// everything is a scope with all names.
var everything = Scope{Item: true, Output: true, Failure: true, IdempotencyKey: true, Error: true}

// sample are the values that the tests see.
func sample() *Vars {
	return &Vars{
		Input: `{"total":1000.50,"order_id":"o-1","n":10,"ten":10.0,"kilo":1e3,"half":2.5,"big":18446744073709551615,"bigger":12345678901234567890.5,` +
			`"items":[{"sku":"a","price":10},{"sku":"b","price":2.5}],"tags":["x","y"],"map":{"z":1,"a":2,"é":3,"Z":4},"nothing":null,"empty":[],` +
			`"esc":"A\/\u0000","flag":true,"s":"text","numbers":[3,1.5,2]}`,
		Step: func(id string) Step {
			switch id {
			case "reserve":
				return Step{Output: `{"id":"r-1","qty":18446744073709551616}`, Status: "SUCCEEDED", Attempt: 2}
			case "skipped":
				return Step{Status: "SKIPPED", Skipped: true}
			}
			return Step{}
		},
		Execution: Execution{ID: "e-1", Workflow: "w", Version: "1.0.0", StartedAtMS: 1_700_000_000_000, ParentID: "p-1", ParentStep: "s"},
		NowMS:     1_700_000_000_500,
		Item:      `{"sku":"i"}`, Index: 3, Output: `{"id":7}`, Failure: `{"reason":"failed","code":"X","message":"m"}`, Error: `{"code":"E"}`,
		IdempotencyKey: "k",
	}
}

func mustEval(t *testing.T, source string) string {
	t.Helper()
	p, problems := Expression(source, everything)
	if len(problems) > 0 {
		t.Errorf("%s: %+v", source, problems)
		return ""
	}
	v, err := p.Eval(sample(), Bounds{})
	if err != nil {
		return "error: " + err.Error()
	}
	return string(v)
}

func BenchmarkCondition(b *testing.B) {
	p, problems := Expression("input.total > 1000", Scope{})
	if problems != nil {
		b.Fatal(problems)
	}
	vars := sample()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Bool(vars, Bounds{}); err != nil {
			b.Fatal(err)
		}
	}
}
