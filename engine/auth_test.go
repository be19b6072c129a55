package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
)

func TestToken_TasksAreNamesPrefixesOrAll(t *testing.T) {
	const forms = "a token's task is a name such as payment.charge, a prefix such as payment.*, or * for every task; this is "
	const reserved = " is the server's own, as http.request is and all that begins with orbit., perigee. or workflow:; no worker offers it: leave it out"
	b := newBench(t, engine.Options{})
	for pattern, want := range map[string]string{
		"addon*":       forms + `"addon*"; did you mean addon.*?`,
		"Foo Bar":      forms + `"Foo Bar"`,
		"*.charge":     forms + `"*.charge"`,
		"payment.":     forms + `"payment."`,
		"payment.*.a":  forms + `"payment.*.a"`,
		".*":           forms + `".*"`,
		"**":           forms + `"**"`,
		"":             forms + `""`,
		"perigee.x":    `a token's task "perigee.x"` + reserved,
		"perigee.*":    `a token's task "perigee.*"` + reserved,
		"orbit.a.*":    `a token's task "orbit.a.*"` + reserved,
		"workflow:x":   `a token's task "workflow:x"` + reserved,
		"http.request": `a token's task "http.request"` + reserved,
	} {
		_, err := b.CreateToken(t.Context(), "refused", engine.Identity{Role: engine.RoleWorker, Tasks: []string{"payment.charge", pattern}})
		var refused *engine.Error
		if !errors.As(err, &refused) || refused.Code != engine.InvalidRequest {
			t.Errorf("%q: got %v", pattern, err)
			continue
		}
		if diff := cmp.Diff(want, refused.Message); diff != "" {
			t.Errorf("%q:\n%s", pattern, diff)
		}
	}
	tasks := []string{"payment.charge", "payment.*", "http.*", "perigee", "ops-2.mail_x.*", "*"}
	token, err := b.CreateToken(t.Context(), "kept", engine.Identity{Role: engine.RoleWorker, Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.Authenticate(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tasks, id.Tasks); diff != "" {
		t.Error(diff)
	}
	list, err := b.Tokens(t.Context())
	if err != nil || len(list) != 1 || !strings.HasPrefix(token, "perigee_") {
		t.Errorf("got %+v, %v", list, err)
	}
}
