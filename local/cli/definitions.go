package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perigee/engine/definition"
	"perigee/local/console"
	"perigee/sdk/go/client"
)

// document is a definition in a file.
type document struct {
	path   string
	text   []byte
	format definition.Format
	def    *definition.Definition // nil: it has errors
	faults []definition.Fault
}

func (d *document) mediaType() string {
	if d.format == definition.JSON {
		return client.JSON
	}
	return client.YAML
}

func (d *document) name() string { return d.def.Name + "@" + d.def.Version }

// documents reads and compiles files. A folder stands for the files in it that
// end in .yaml, .yml or .json; - for standard input, which is taken for YAML.
func (a *app) documents(args []string) ([]*document, error) {
	var list []*document
	for _, arg := range args {
		paths, err := definitionFiles(arg)
		if err != nil {
			return nil, usage("%w", err)
		}
		for _, path := range paths {
			from := "@" + path
			if path == "-" {
				from = path
			}
			text, _, err := a.read(from)
			if err != nil {
				return nil, usage("%w", err)
			}
			d := &document{path: path, text: text, format: definition.YAML}
			if strings.EqualFold(filepath.Ext(path), ".json") {
				d.format = definition.JSON
			}
			d.def, d.faults = definition.Parse(text, d.format)
			list = append(list, d)
		}
	}
	return list, nil
}

func definitionFiles(arg string) ([]string, error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	entries, err := os.ReadDir(arg)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		switch strings.ToLower(filepath.Ext(e.Name())) {
		case ".yaml", ".yml", ".json":
			if !e.IsDir() {
				paths = append(paths, filepath.Join(arg, e.Name()))
			}
		}
	}
	if len(paths) == 0 {
		return nil, usage("%s: no file in this folder ends in .yaml, .yml or .json", arg)
	}
	return paths, nil
}

// showFaults prints faults as compilers do, with the line they stand in.
func (a *app) showFaults(d *document) {
	paint := a.print.Paint
	lines := strings.Split(string(d.text), "\n")
	for _, f := range d.faults {
		style := console.Red
		if f.Severity == definition.SeverityWarning {
			style = console.Yellow
		}
		place := d.path
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", d.path, f.Line, f.Column)
		}
		a.print.Line("%s: %s: %s [%s]", place, paint.Text(style, f.Severity), console.Printable(f.Message), f.Code)
		if f.Line > 0 && f.Line <= len(lines) && d.format == definition.YAML {
			a.showPlace(lines[f.Line-1], f.Column)
		}
		if f.Hint != "" {
			a.print.Line("    %s %s", paint.Text(console.Cyan, "hint:"), console.Printable(f.Hint))
		}
	}
}

// showPlace prints a line with a mark below the place that is meant.
func (a *app) showPlace(line string, column int) {
	line = strings.TrimRight(line, "\r")
	const widest = 160
	if len([]rune(line)) > widest || column < 1 {
		return
	}
	a.print.Line("    %s", a.print.Paint.Text(console.Dim, console.Printable(line)))
	a.print.Line("    %s%s", strings.Repeat(" ", column-1), a.print.Paint.Text(console.Cyan, "^"))
}

// childrenFirst orders documents so that each comes after the ones whose
// workflows it starts. It names a circle where there is one.
func childrenFirst(list []*document) ([]*document, error) {
	byName := map[string]*document{}
	for _, d := range list {
		if twin := byName[d.name()]; twin != nil {
			return nil, usage("%s and %s both define %s; give one of them another version", twin.path, d.path, d.name())
		}
		byName[d.name()] = d
	}
	var ordered []*document
	var path []string
	done := map[*document]bool{}
	var visit func(d *document) error
	visit = func(d *document) error {
		if done[d] {
			return nil
		}
		if i := slices.Index(path, d.name()); i >= 0 {
			return usage("these workflows start each other in a circle: %s", strings.Join(append(path[i:], d.name()), " → "))
		}
		path = append(path, d.name())
		for _, child := range d.def.Children {
			if c := byName[child]; c != nil {
				if err := visit(c); err != nil {
					return err
				}
			}
		}
		path = path[:len(path)-1]
		done[d] = true
		ordered = append(ordered, d)
		return nil
	}
	for _, d := range list {
		if err := visit(d); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}
