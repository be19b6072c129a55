package migrator

import (
	"context"
	"encoding/json"
	"fmt"

	"perigee/engine"
	"perigee/store"
)

// tokenCommand is one of {"create": NAME, "role": ROLE, …}, {"list": true} and
// {"delete": NAME}.
type tokenCommand struct {
	Create    string   `json:"create"`
	Role      string   `json:"role"`
	WorkerIDs []string `json:"worker_ids"`
	Tasks     []string `json:"tasks"`
	List      bool     `json:"list"`
	Delete    string   `json:"delete"`
}

// made is the answer to create: the one time that a token is shown.
type made struct {
	Name  string `json:"name"`
	Role  string `json:"role"`
	Token string `json:"token"`
}

// listed is a token in the answer to list.
type listed struct {
	Name        string   `json:"name"`
	Role        string   `json:"role"`
	CreatedAtMS int64    `json:"created_at_ms"`
	WorkerIDs   []string `json:"worker_ids,omitempty"`
	Tasks       []string `json:"tasks,omitempty"`
}

// isTokenCommand reports whether an event asks for something about tokens, well
// or badly: a slip of the pen must not migrate.
func isTokenCommand(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members["token"] != nil
}

// run does what the command says. malformed is why it could not be read.
func (c *tokenCommand) run(ctx context.Context, e *engine.Engine, malformed error) (any, error) {
	if c == nil || malformed != nil || !c.one() {
		return nil, &engine.Error{
			Code:    engine.InvalidRequest,
			Message: `expected {"token": …} with one of {"create": NAME, "role": ROLE, "worker_ids": […], "tasks": […]}, {"list": true} and {"delete": NAME}`,
			Cause:   malformed,
		}
	}
	switch {
	case c.Create != "":
		token, err := e.CreateToken(ctx, c.Create, engine.Identity{Role: c.Role, WorkerIDs: c.WorkerIDs, Tasks: c.Tasks})
		if err != nil {
			return nil, err
		}
		return made{c.Create, c.Role, token}, nil
	case c.Delete != "":
		if err := e.DeleteToken(ctx, c.Delete); err != nil {
			return nil, fmt.Errorf("delete token %s: %w", c.Delete, err)
		}
		return map[string]string{"deleted": c.Delete}, nil
	}
	tokens, err := e.Tokens(ctx)
	list := []listed{}
	for _, t := range tokens {
		list = append(list, listOf(t))
	}
	return map[string]any{"tokens": list}, err
}

// one reports whether the command is exactly one.
func (c *tokenCommand) one() bool {
	commands := 0
	for _, given := range []bool{c.Create != "", c.List, c.Delete != ""} {
		if given {
			commands++
		}
	}
	return commands == 1
}

func listOf(t store.Token) listed {
	return listed{t.Name, t.Role, t.CreatedAtMS, t.WorkerIDs, t.Tasks}
}
