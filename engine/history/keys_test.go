package history_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine/history"
)

func TestParseKey_TakesEveryShapeApart(t *testing.T) {
	tests := []struct {
		key     string
		want    history.Key
		cleanup bool
	}{
		{"a", history.Key{Step: "a", Index: -1, Unit: "a"}, false},
		{history.ElementKey("a", 12), history.Key{Step: "a", Index: 12, Unit: "a[12]"}, false},
		{history.CompensationKey("a"), history.Key{Compensation: true, Step: "a", Index: -1, Unit: "a"}, true},
		{history.CompensationKey("a[0]"), history.Key{Compensation: true, Step: "a", Index: 0, Unit: "a[0]"}, true},
		{history.HandlerKey(history.HandlerFailure, "a"), history.Key{Handler: "failure", Step: "a", Index: -1, Unit: "on_failure:a"}, true},
		{history.HandlerKey(history.HandlerCancel, "a"), history.Key{Handler: "cancel", Step: "a", Index: -1, Unit: "on_cancel:a"}, true},
		{"on_timeout:a[3]", history.Key{Handler: "timeout", Step: "a", Index: 3, Unit: "on_timeout:a[3]"}, true},
		{"on_success:a", history.Key{Step: "on_success:a", Index: -1, Unit: "on_success:a"}, false},
		{"on_failure", history.Key{Step: "on_failure", Index: -1, Unit: "on_failure"}, false},
		{"a[01]", history.Key{Step: "a[01]", Index: -1, Unit: "a[01]"}, false},
		{"a[-1]", history.Key{Step: "a[-1]", Index: -1, Unit: "a[-1]"}, false},
		{"a[x]", history.Key{Step: "a[x]", Index: -1, Unit: "a[x]"}, false},
		{"a]", history.Key{Step: "a]", Index: -1, Unit: "a]"}, false},
		{"", history.Key{Index: -1}, false},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, history.ParseKey(tt.key)); diff != "" {
				t.Errorf("key (-want +got):\n%s", diff)
			}
			if got := history.IsCleanup(tt.key); got != tt.cleanup {
				t.Errorf("expected cleanup to be %v, got %v", tt.cleanup, got)
			}
		})
	}
}

func TestChildID_IsMadeOfParentAndUnit(t *testing.T) {
	tests := []struct{ unit, want string }{
		{"invoice", "p.invoice"},
		{"ship[12]", "p.ship.12"},
		{"compensate:ship[0]", "p.compensate.ship.0"},
		{"on_failure:told", "p.on_failure:told"},
	}
	for _, tt := range tests {
		if got := history.ChildID("p", tt.unit); got != tt.want {
			t.Errorf("%s: expected %s, got %s", tt.unit, tt.want, got)
		}
	}
}

func TestChildID_IsShortenedAndStaysDistinct(t *testing.T) {
	parent := strings.Repeat("p", 198)
	if got := history.ChildID(parent, "a"); got != parent+".a" {
		t.Errorf("expected 200 characters to stay, got %s", got)
	}
	one, two := history.ChildID(parent, "ab"), history.ChildID(parent, "ac")
	if len(one) != 200 || len(two) != 200 || one == two {
		t.Errorf("expected two ids of 200 characters, got %s and %s", one, two)
	}
	if one != history.ChildID(parent, "ab") {
		t.Error("expected the same id again")
	}
	grandchild := history.ChildID(one, "ab")
	if len(grandchild) != 200 || grandchild == one {
		t.Errorf("expected another id of 200 characters, got %s", grandchild)
	}
}
