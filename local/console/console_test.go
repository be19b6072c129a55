package console_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/local/console"
)

func TestDuration_IsAsShortAsItCanBeRead(t *testing.T) {
	for ms, want := range map[int64]string{
		-5: "0ms", 0: "0ms", 999: "999ms", 4250: "4.2s", 59_999: "59.9s", 185_000: "3m05s", 7_380_000: "2h03m", 273_600_000: "3d04h",
	} {
		if got := console.Duration(ms); got != want {
			t.Errorf("Duration(%d): got %s, want %s", ms, got, want)
		}
	}
}

func TestNear_NamesTheDateOnlyOfAnotherDay(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC).UnixMilli()
	if got := console.Near(now+60_000, now, time.UTC); got != "12:01:00" {
		t.Errorf("today: %s", got)
	}
	if got := console.Near(now+86_400_000, now, time.UTC); got != "2026-11-30 12:00:00" {
		t.Errorf("tomorrow: %s", got)
	}
}

func TestTable_ColumnsAreAsWideAsTheyNeed(t *testing.T) {
	var table console.Table
	table.Head("ID", "STATUS", "NOTE")
	table.Row("größer", "ok", "a b")
	table.Cells(console.Cell{Text: "x"}, console.Cell{Text: "failed", Style: console.Red}, console.Cell{})
	var out bytes.Buffer
	if err := table.Write(&out, console.Palette{}, "  "); err != nil {
		t.Fatal(err)
	}
	want := "  ID      STATUS  NOTE\n  größer  ok      a b\n  x       failed\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := table.Write(&out, console.Palette{On: true}, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\x1b[31mfailed\x1b[0m\n") {
		t.Errorf("colours: %q", out.String())
	}
}

func TestPrintable_KeepsTheTerminalFromBeingSteered(t *testing.T) {
	if got := console.Printable("a\x1b[31mb\nc\u202ed\x00"); got != "a[31mb cd" {
		t.Errorf("got %q", got)
	}
}

func TestPrinter_SpeaksJSONOrWordsNotBoth(t *testing.T) {
	var out, err bytes.Buffer
	p := console.New(&out, &err, "")
	p.Line("for people: %d", 1)
	p.Note("note")
	if e := p.Object(map[string]string{"a": "<"}); e != nil {
		t.Fatal(e)
	}
	p.JSON = true
	p.Line("again")
	p.Note("again")
	if e := p.Object(map[string]string{"a": "<"}); e != nil {
		t.Fatal(e)
	}
	if diff := cmp.Diff("for people: 1\n{\"a\":\"<\"}\n", out.String()); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("note\n", err.String()); diff != "" {
		t.Errorf("err (-want +got):\n%s", diff)
	}
	if p.Terminal || p.Paint.On {
		t.Error("a buffer is no terminal")
	}
}
