package decide

import (
	"math/bits"

	"github.com/tidwall/btree"

	"perigee/engine/history"
)

// openSet holds units that are neither pending nor resolved, ordered by status
// and then by place. Cloning is copy-on-write.
type openSet struct{ tree *btree.BTreeG[openUnit] }

type openUnit struct {
	status history.UnitStatus
	ref    ref
}

func newOpenSet() openSet {
	less := func(a, b openUnit) bool {
		if a.status != b.status {
			return a.status < b.status
		}
		return a.ref.less(b.ref)
	}
	return openSet{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: 16})}
}

func (s openSet) clone() openSet { return openSet{s.tree.Copy()} }

func (s openSet) move(r ref, was, is history.UnitStatus) {
	if opened(was) == 1 {
		s.tree.Delete(openUnit{was, r})
	}
	if opened(is) == 1 {
		s.tree.Set(openUnit{is, r})
	}
}

// first finds the first unit of a status at or behind a place.
func (s openSet) first(status history.UnitStatus, from ref) (found ref, ok bool) {
	s.tree.Ascend(openUnit{status, from}, func(u openUnit) bool {
		found, ok = u.ref, u.status == status
		return false
	})
	return found, ok
}

// firstOf is first within the units of one step.
func (s openSet) firstOf(status history.UnitStatus, from ref) (ref, bool) {
	found, ok := s.first(status, from)
	return found, ok && found.phase == from.phase && found.step == from.step
}

// list lists the units of a status in one phase, at most limit of them. It is
// a copy: the set may change while it is walked.
func (s openSet) list(status history.UnitStatus, p phase, limit int) []ref {
	var refs []ref
	s.tree.Ascend(openUnit{status, ref{phase: p, elem: whole}}, func(u openUnit) bool {
		if u.status != status || u.ref.phase != p || len(refs) == limit {
			return false
		}
		refs = append(refs, u.ref)
		return true
	})
	return refs
}

// moment is a point in time at which a unit has to be looked at.
type moment struct {
	atMS int64
	ref  ref
}

// momentSet holds moments, the oldest first, ties in the definition's order.
type momentSet struct{ tree *btree.BTreeG[moment] }

func newMomentSet() momentSet {
	less := func(a, b moment) bool {
		if a.atMS != b.atMS {
			return a.atMS < b.atMS
		}
		return a.ref.less(b.ref)
	}
	return momentSet{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true, Degree: 16})}
}

func (s momentSet) clone() momentSet { return momentSet{s.tree.Copy()} }

// stepSet is a set of main steps, a bit for each.
type stepSet []uint64

func newStepSet(steps int) stepSet { return make(stepSet, (steps+63)/64) }

func (s stepSet) set(step int, in bool) {
	if bit := uint64(1) << (step % 64); in {
		s[step/64] |= bit
	} else {
		s[step/64] &^= bit
	}
}

// next is the first step of the set at or behind one.
func (s stepSet) next(from int) (step int, ok bool) {
	for word := from / 64; word < len(s); word++ {
		left := s[word]
		if word == from/64 {
			left &= ^uint64(0) << (from % 64)
		}
		if left != 0 {
			return 64*word + bits.TrailingZeros64(left), true
		}
	}
	return 0, false
}
