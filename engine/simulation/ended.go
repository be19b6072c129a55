package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"perigee/engine"
	"perigee/engine/history"
	"perigee/store"
)

// ended takes what an engine tells of ends: nothing ends twice, or before it
// began. What is told is compared with the histories at the end of a run.
func (w *World) ended(list []engine.Ended) {
	for _, e := range list {
		what := "execution " + e.ExecutionID
		if a := e.Attempt; a != nil {
			what = fmt.Sprintf("attempt %d of %s/%s", a.Number, e.ExecutionID, a.Unit)
			w.count("told: " + string(a.Outcome))
		} else {
			w.count("told: " + string(e.Status))
		}
		if _, twice := w.told[what]; twice {
			w.fail("%s was told to have ended twice", what)
		}
		if e.StartMS == 0 || e.EndMS < e.StartMS {
			w.fail("%s was told to last from %d to %d", what, e.StartMS, e.EndMS)
		}
		w.told[what] = e
	}
}

// compareTold: what was told of is as the histories have it, and in the trace of
// its family. Commits of unknown outcome tell nothing, so that not all is told.
func (w *World) compareTold() {
	for what, e := range w.told {
		m := w.models[e.ExecutionID]
		if m == nil {
			w.fail("%s was told, and there is no such execution", what)
			return
		}
		if root := w.root(m); e.RootID != root {
			w.fail("%s was told to be of the family of %s, it is of %s", what, e.RootID, root)
		}
		s := m.state
		switch a := e.Attempt; {
		case a == nil:
			if s.FinishedAtMS == nil || e.EndMS != *s.FinishedAtMS || e.StartMS != s.CreatedAtMS || e.Status != s.Status {
				w.fail("%s was told as %s from %d to %d, its history says otherwise", what, e.Status, e.StartMS, e.EndMS)
			}
		case s.Unit(a.Unit) == nil || !slices.ContainsFunc(s.Unit(a.Unit).Tokens, func(t history.IssuedToken) bool { return t.Attempt == a.Number }):
			w.fail("%s was told, its history handed none out", what)
		}
	}
}

// root is the execution at the top of a family.
func (w *World) root(m *model) string {
	for m.state.Parent != nil && w.models[m.state.Parent.ExecutionID] != nil {
		m = w.models[m.state.Parent.ExecutionID]
	}
	return m.id
}

// compareRoots: heads and task rows name the top of their family.
func (w *World) compareRoots(m *model) {
	loaded, err := w.store.Load(context.Background(), store.LoadRequest{ID: m.id, NowMS: w.now})
	if err != nil || loaded.Head == nil {
		w.fail("load %s: %v", m.id, err)
		return
	}
	if got, root := cmp.Or(loaded.Head.RootID, m.id), w.root(m); got != root {
		w.fail("%s: its head names the root %s, it is %s", m.id, got, root)
	}
	tasks, err := w.store.Tasks(context.Background(), m.id)
	if err != nil {
		w.fail("list the tasks of %s: %v", m.id, err)
	}
	for _, t := range tasks {
		if t.RootID != loaded.Head.RootID {
			w.fail("%s: the task names the root %q, its head %q", t.Key, t.RootID, loaded.Head.RootID)
		}
	}
}
