package definition

import (
	"fmt"
	"slices"
	"strings"
)

// maxEdges bounds what wide groups behind wide groups cost.
const maxEdges = 1 << 20

// order gives the steps of a list their predecessors and dependents.
//
// A step waits for (a) `after` if it is given, else the ends of everything
// before it in its list, and (b) every step that its expressions name. The ends
// of a list are those steps that no step behind them in the list waits for.
func (c *compiler) order(list *stepList, entries []entry) {
	o := orderer{compiler: c, list: list}
	o.sequence(entries, nil)
	if o.edges > maxEdges {
		c.fault(list.steps[0].node, CodeTooLarge, fmt.Sprintf("the steps wait for each other in more than %d ways", maxEdges), "put one step between wide groups")
		return
	}
	if c.check && o.cycles() {
		return
	}
	for _, s := range list.steps {
		for _, p := range s.Predecessors {
			before := list.steps[p]
			before.Dependents = append(before.Dependents, s.Index)
		}
	}
}

type orderer struct {
	*compiler
	list  *stepList
	edges int
}

// sequence orders a list whose first entry starts after `start`, and gives its
// ends.
func (o *orderer) sequence(entries []entry, start []int) (ends []int) {
	ends = slices.Clone(start) // from here on it is changed in place
	for _, e := range entries {
		if e.step != nil {
			ends = o.place(e.step, ends)
		} else {
			ends = o.together(e.group, ends)
		}
	}
	return ends
}

// together orders the lists of a group, which start alike. What was before the
// group is still an end where nothing in the group waits for it.
func (o *orderer) together(group [][]entry, start []int) (ends []int) {
	if len(group) == 0 {
		return start
	}
	first, seen := len(o.list.steps), map[int]bool{}
	last := 0
	visit(group, func(s *stepInfo) { first, last = min(first, s.Index), max(last, s.Index) })
	for _, entries := range group {
		for _, end := range o.sequence(entries, start) {
			if !seen[end] {
				seen[end] = true
				ends = append(ends, end)
			}
		}
	}
	waited := map[int]bool{}
	for i := first; i <= last && i < len(o.list.steps); i++ {
		for _, p := range o.list.steps[i].Predecessors {
			waited[p] = true
		}
	}
	ends = slices.DeleteFunc(ends, func(end int) bool { return waited[end] && slices.Contains(start, end) })
	slices.Sort(ends)
	return ends
}

func visit(group [][]entry, do func(*stepInfo)) {
	for _, entries := range group {
		for _, e := range entries {
			if e.step != nil {
				do(e.step)
			}
			visit(e.group, do)
		}
	}
}

// place gives one step its predecessors and makes it an end, instead of those
// that it waits for.
func (o *orderer) place(s *stepInfo, ends []int) []int {
	var needs []int
	if s.hasAfter {
		needs = o.after(s)
	} else {
		needs = slices.Clone(ends)
	}
	for _, id := range s.refs {
		if before := o.list.byID[id]; before != nil {
			needs = append(needs, before.Index)
		}
	}
	slices.Sort(needs)
	s.Predecessors = slices.Compact(needs)
	if o.edges += len(s.Predecessors); o.edges > maxEdges {
		s.Predecessors = nil
	}
	if !s.hasAfter {
		ends = ends[:0] // it waits for all of them
	}
	for _, p := range s.Predecessors {
		if i, waited := slices.BinarySearch(ends, p); waited {
			ends = slices.Delete(ends, i, i+1)
		}
	}
	return append(ends, s.Index) // the highest so far
}

func (o *orderer) after(s *stepInfo) []int {
	var needs []int
	for i, id := range s.after {
		before := o.list.byID[id]
		if before == nil {
			o.fault(s.node.get("after").array()[i], CodeUnknownStep, fmt.Sprintf("after: there is no step %s", shown(id)), near(o.compiler, id, o.list.byID))
			continue
		}
		needs = append(needs, before.Index)
	}
	return needs
}

// cycles reports the first cycles that a walk along the predecessors meets.
func (o *orderer) cycles() bool {
	const unseen, open, done = 0, 1, 2
	state := make([]byte, len(o.list.steps))
	var path []int
	found := 0
	const most = 10
	var walk func(i int)
	walk = func(i int) {
		state[i] = open
		path = append(path, i)
		for _, p := range o.list.steps[i].Predecessors {
			switch state[p] {
			case unseen:
				walk(p)
			case open:
				if found++; found <= most {
					o.reportCycle(path[slices.Index(path, p):])
				}
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range state {
		if state[i] == unseen {
			walk(i)
		}
	}
	return found > 0
}

// reportCycle names the steps in the order in which they would have to run,
// from the one that stands first, at the one that closes the cycle.
func (o *orderer) reportCycle(path []int) {
	cycle := slices.Clone(path)
	slices.Reverse(cycle)
	least := slices.Index(cycle, slices.Min(cycle))
	cycle = append(cycle[least:], cycle[:least]...)
	first := o.list.steps[cycle[0]]
	if len(cycle) == 1 {
		o.fault(first.node, CodeCycle, fmt.Sprintf("step %s waits for itself", first.ID), "a step's result is there only after it has run")
		return
	}
	names := make([]string, 0, len(cycle)+1)
	for _, i := range append(cycle, cycle[0]) {
		names = append(names, o.list.steps[i].ID)
	}
	o.fault(first.node, CodeCycle, "these steps wait for each other: "+strings.Join(names, " -> "), "each step waits for what is before it in its list, for `after` and for the steps that its expressions name")
}
