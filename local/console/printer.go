package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Printer writes the output of one command. Answers go to Out, everything
// about them (progress, notes, warnings) to Err.
type Printer struct {
	Out, Err io.Writer
	JSON     bool // JSON lines instead of words
	// Terminal says that a person watches Err: progress is shown.
	Terminal bool
	// Paint colours what goes to Out.
	Paint Palette
}

// New makes a printer. noColor is the value of NO_COLOR: anything but "" turns
// colours off.
func New(out, err io.Writer, noColor string) *Printer {
	return &Printer{
		Out: out, Err: err,
		Terminal: isTerminal(err),
		Paint:    Palette{On: isTerminal(out) && noColor == ""},
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Line writes a line for people to Out; nothing in JSON mode.
func (p *Printer) Line(format string, args ...any) {
	if !p.JSON {
		fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// Note writes a line about the answer to Err; nothing in JSON mode.
func (p *Printer) Note(format string, args ...any) {
	if !p.JSON {
		fmt.Fprintf(p.Err, format+"\n", args...)
	}
}

// Warn writes a line to Err in either mode.
func (p *Printer) Warn(format string, args ...any) {
	fmt.Fprintf(p.Err, format+"\n", args...)
}

// Object writes v as one JSON line to Out; nothing for people.
func (p *Printer) Object(v any) error {
	if !p.JSON {
		return nil
	}
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Raw writes JSON text as it is, on a line of its own, in either mode.
func (p *Printer) Raw(text []byte) error {
	_, err := p.Out.Write(append(text[:len(text):len(text)], '\n'))
	return err
}
