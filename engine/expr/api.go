package expr

import "perigee/engine/exactjson"

// Scope says which names an expression may use, and what is known about them.
// The names input, steps, execution and now are always there.
type Scope struct {
	Item           bool // item and index, under `for`
	Output         bool // output: of the unit that a compensation undoes
	Failure        bool // failure {reason, code, message}
	IdempotencyKey bool // idempotency_key, in a compensation
	Error          bool // error, in a catch clause
}

// Problem is one fault of an expression or template.
type Problem struct {
	Code    string // such as "expression_syntax", "unknown_name", "half_open_template"
	Message string // what was expected and what came
	Hint    string // what to do; may be ""
	Path    string // JSON pointer into a template; "" for the whole of it
	Offset  int    // of the fault, in bytes from the start of the string at Path
}

// Each is the name of the segment for an index or a computed key, as in
// input.items[0].sku (items, [], sku).
const Each = "[]"

// Segment is one selection behind a reference's root.
type Segment struct {
	Name     string
	Optional bool // written .?name or [?"name"], or guarded by has() or a comparison with null
}

// Ref is a plain selection that starts at a name in scope, such as
// steps.reserve.output.id (Root "steps", Path reserve, output, id).
type Ref struct {
	Root   string
	Path   []Segment
	At     string // JSON pointer of the string that holds it
	Offset int    // in bytes from the start of that string
}

// Step is what an expression may see of a step.
type Step struct {
	Output  exactjson.Value // "" reads as null
	Status  string          // "" reads as null
	Error   exactjson.Value // "" reads as null
	Attempt uint32
	Skipped bool // makes for a better message where output is null
}

// Execution is what an expression may see of its execution.
type Execution struct {
	ID, Workflow, Version string
	StartedAtMS           int64
	ParentID, ParentStep  string // "" without a parent: parent reads as null
}

// Vars holds the values of the names in scope. Only those that an expression
// touches are converted. Values outside the compile-time Scope are ignored.
type Vars struct {
	Input          exactjson.Value
	Step           func(id string) Step // never called for an undeclared step
	Execution      Execution
	NowMS          int64
	Item           exactjson.Value
	Index          int
	Output         exactjson.Value
	Failure        exactjson.Value
	Error          exactjson.Value
	IdempotencyKey string
}

// Bounds limit one evaluation. Zero fields mean the defaults.
type Bounds struct {
	Cost        uint64 // CEL cost units, default 1 000 000
	ResultBytes int    // of the result's JSON text, default 64 MiB
}

// Error is a failed evaluation; the engine records it as EXPRESSION_ERROR.
// (A result that is too large has TooLarge set: PAYLOAD_TOO_LARGE.)
type Error struct {
	Expression string // as written
	Message    string
	TooLarge   bool
	Limit      int // bytes, with TooLarge
}

func (e *Error) Error() string { return e.Message }
