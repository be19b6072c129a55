package definition

// Graph is a definition's steps and their order, for drawing.
type Graph struct {
	Nodes []GraphNode `json:"nodes"`
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one step.
type GraphNode struct {
	ID         string `json:"id"`   // a handler's step has on_<kind>: before its id
	Kind       string `json:"kind"` // task, workflow, sleep, await, compute or fail
	Task       string `json:"task,omitempty"`
	Workflow   string `json:"workflow,omitempty"`
	Signal     string `json:"signal,omitempty"`
	For        bool   `json:"for,omitempty"`
	When       bool   `json:"when,omitempty"`
	Handler    string `json:"handler,omitempty"`    // failure, cancel or timeout
	Compensate string `json:"compensate,omitempty"` // the task or workflow that undoes it
}

// GraphEdge says that To waits for From.
type GraphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

var kindNames = [...]string{"", "task", "workflow", "sleep", "await", "compute", "fail"}

// String is the kind as the key that makes a step of it; `until` is a sleep.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Graph is the order of the definition: the main list, then the handlers.
func (d *Definition) Graph() Graph {
	g := Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}}
	g.add(d.Steps, "")
	for _, h := range handlerKeys {
		g.add(d.Handlers[h.kind], h.kind)
	}
	return g
}

func (g *Graph) add(steps []*Step, handler string) {
	prefix := ""
	if handler != "" {
		prefix = "on_" + handler + ":"
	}
	for _, s := range steps {
		n := GraphNode{
			ID: prefix + s.ID, Kind: s.Kind.String(), Signal: s.Signal,
			For: s.For != nil, When: len(s.When) > 0, Handler: handler,
		}
		switch {
		case s.Call == nil:
		case s.Kind == KindWorkflow:
			n.Workflow = s.Call.Workflow
		default:
			n.Task = s.Call.Name()
		}
		if s.Compensate != nil {
			n.Compensate = s.Compensate.Name()
		}
		g.Nodes = append(g.Nodes, n)
		for _, p := range s.Predecessors {
			g.Edges = append(g.Edges, GraphEdge{From: prefix + steps[p].ID, To: n.ID})
		}
	}
}

// StepByID is the step of the main list with that id, or nil.
func (d *Definition) StepByID(id string) *Step {
	if d.byID != nil {
		return d.byID[id]
	}
	return stepIn(d.Steps, id)
}

func stepIn(steps []*Step, id string) *Step {
	for _, s := range steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}
