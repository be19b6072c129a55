package words

import (
	"strings"
	"testing"
)

func TestShorten_CutsBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aéd", 2, "a…"}, {"é", 1, "…"}, {"", 0, ""}} {
		if got := Shorten(tt.s, tt.limit); got != tt.want {
			t.Errorf("Shorten(%q, %d) is %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

func TestNearest_FindsWhatWasMeant(t *testing.T) {
	candidates := []string{"timeout", "timer", "retry", "Compensate", strings.Repeat("x", 65)}
	for name, want := range map[string]string{
		"timeuot": "timeout", "tiemr": "timer", "compensate": "Compensate", "rety": "retry", "retries": "",
		"": "", strings.Repeat("x", 64): "", strings.Repeat("x", 66): "",
	} {
		if got := Nearest(name, candidates); got != want {
			t.Errorf("for %q: %q, want %q", name, got, want)
		}
	}
}

func TestDistance_CountsWhatHasToChange(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"ab", "ba", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got, back := distance(tt.a, tt.b), distance(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("from %q to %q: %d, back %d; want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}
