package traceid_test

import (
	"regexp"
	"testing"

	"perigee/engine/traceid"
)

// These ids are in other systems' stores: they never change.
func TestParent_IsTheSameEverywhereAndAlways(t *testing.T) {
	got := traceid.Parent("", "order-1", "charge", 1)
	if !regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(got) {
		t.Errorf("%s is no traceparent", got)
	}
	if want := "00-2fbb2f2877a62deaa4877c2e11e418a1-19d708a8e14df106-01"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParent_OfAChildIsInTheTraceOfItsRoot(t *testing.T) {
	want := "00-" + traceid.Trace("order-1") + "-" + traceid.Attempt("order-1.ship", "pack", 2) + "-01"
	if got := traceid.Parent("order-1", "order-1.ship", "pack", 2); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestIDs_DifferWhereSomethingDiffers(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{
		traceid.Execution("a"), traceid.Execution("b"),
		traceid.Attempt("a", "s", 1), traceid.Attempt("a", "s", 2), traceid.Attempt("a", "t", 1), traceid.Attempt("b", "s", 1),
		traceid.Attempt("a", "s1", 1), traceid.Attempt("as", "", 1),
	} {
		if seen[id] {
			t.Errorf("%s twice", id)
		}
		seen[id] = true
	}
	if traceid.Trace("a") == traceid.Trace("b") {
		t.Error("two executions share a trace")
	}
}
