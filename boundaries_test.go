// Package perigee_test keeps the shape of the source: which package may import
// which, what the pure ones must not touch, and what must not reach a binary.
// Every rule has its reason; ARCHITECTURE.md draws the picture.
package perigee_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "perigee"

// pure are the packages that decide: the same input gives the same bytes, so
// that a history can be replayed, simulated and tested without a world.
var pure = []string{
	"engine/exactjson", "engine/words", "engine/expr", "engine/schema", "engine/definition", "engine/history", "engine/decide",
}

// impure are imports by which the world would reach a pure package.
var impure = map[string]string{
	"context":      "there is nothing to cancel: a decision is one computation",
	"crypto/rand":  "ids and secrets come in as parameters",
	"math/rand":    "a decision must come out the same at every replay",
	"math/rand/v2": "a decision must come out the same at every replay",
	"database/sql": "the engine loads and commits around a decision",
	"net":          "a decision asks nobody",
	"net/http":     "a decision asks nobody",
	"os":           "files and environment differ from machine to machine",
	"os/exec":      "a decision starts nothing",
	"log":          "only the outermost shell logs",
	"log/slog":     "only the outermost shell logs",
}

// clocks are the functions of package time that look at a clock. Durations and
// calendar arithmetic are fine: they are values.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// mayImport says which packages of ours a package (or folder, with /...) may
// import; the first line that fits counts.
var mayImport = []struct {
	who    string
	what   []string
	reason string
}{
	{"engine/exactjson", nil, "JSON is below everything"},
	{"engine/words", nil, "words know nothing of what they are for"},
	{"engine/history", []string{"engine/exactjson"}, "the truth depends on no rule about it"},
	{"engine/expr", []string{"engine/exactjson", "engine/words"}, "expressions know no workflow"},
	{"engine/schema", []string{"engine/exactjson", "engine/words"}, "schemas know no workflow"},
	{"engine/definition", []string{"engine/exactjson", "engine/words", "engine/expr", "engine/schema"}, "a definition knows no execution"},
	{"engine/decide", []string{"engine/exactjson", "engine/expr", "engine/schema", "engine/definition", "engine/history"}, "the rules know no database"},
	{"engine/traceid", nil, "an id is a few bytes"},
	{"engine/simulation", []string{"engine/...", "engine", "store"}, "it simulates the engine on a store that it is given"},
	{"engine", []string{"engine/...", "store"}, "the use cases know a store, but not which"},
	{"store/...", []string{"engine/exactjson", "engine/history", "store/...", "store"}, "a store keeps, and decides nothing"},
	{"store", []string{"engine/exactjson", "engine/history"}, "the words of the store are those of the history"},
	{"functions/httpapi/...", []string{"engine/...", "engine", "store", "functions/httpapi"}, "HTTP calls the engine"},
	{"functions/httpapi", []string{"engine/...", "engine", "store"}, "HTTP calls the engine"},
	{"functions/...", []string{"engine/...", "engine", "functions/...", "infra/...", "store/...", "store"}, "an entry point builds and hands over"},
	{"infra/...", []string{"engine/...", "engine", "infra/...", "store/...", "store"}, "configuration and connections"},
	{"sdk/...", []string{"sdk/..."}, "a worker's program holds no engine"},
	{"examples/...", []string{"sdk/..."}, "examples show what users have"},
	{"local/console", nil, "it writes, and knows nothing of what"},
	{"local/view", []string{"engine/...", "local/console"}, "a view is made from a history and a definition alone"},
	{"local/...", []string{"..."}, "the binary joins everything"},
	{"blackbox/...", []string{"..."}, "it tests the binary from outside"},
	{"blackbox", []string{"..."}, "it tests the binary from outside"},
	{"bench/...", []string{"..."}, "it measures everything"},
	{"bench", []string{"..."}, "it measures everything"},
}

// testOnly are modules and packages that no binary may hold.
var testOnly = map[string]string{
	"github.com/google/go-cmp":                "compares in tests",
	"github.com/rogpeppe/go-internal":         "runs command lines in tests",
	"pgregory.net/rapid":                      "makes up test cases",
	"go.opentelemetry.io":                     "reads in tests what is sent to collectors, and would weigh 8 MB",
	"testing":                                 "registers flags of its own and weighs a megabyte",
	module + "/engine/simulation":             "is a test",
	module + "/store/storetest":               "is a test",
	module + "/store/postgres/pgtest":         "starts databases for tests",
	module + "/infra/cloud/moto":              "starts a stand-in for AWS for tests",
	module + "/local/lambda/lambdatest":       "builds functions for tests",
	module + "/functions/httpapi/httpapitest": "is a test",
}

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath, Name, Dir, Doc         string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports                            []string
	Deps                               []string
}

// path is the import path without the module.
func (p goPackage) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// packages lists the module's packages, once for all tests.
var packages = sync.OnceValues(func() ([]goPackage, error) {
	out, err := exec.Command("go", "list", "-deps=false", "-json=ImportPath,Name,Dir,Doc,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
})

func listed(t *testing.T) []goPackage {
	t.Helper()
	list, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < len(pure) {
		t.Fatalf("go list found %d packages only", len(list))
	}
	return list
}

// fits reports whether a path is what a pattern names: itself, everything
// below it (a/...), or everything (...).
func fits(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(path, folder+"/")
	}
	return pattern == path
}

func TestBoundaries_ImportsPointInwards(t *testing.T) {
	for _, p := range listed(t) {
		i := slices.IndexFunc(mayImport, func(rule struct {
			who    string
			what   []string
			reason string
		}) bool {
			return fits(rule.who, p.path())
		})
		if i < 0 {
			if p.path() != "" {
				t.Errorf("%s: no rule says what it may import; add a line to mayImport", p.ImportPath)
			}
			continue
		}
		rule := mayImport[i]
		for _, imported := range p.Imports {
			path, ours := strings.CutPrefix(imported, module+"/")
			if ours && !slices.ContainsFunc(rule.what, func(pattern string) bool { return fits(pattern, path) }) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, rule.reason)
			}
		}
	}
}

func TestBoundaries_PurePackagesTouchNoWorld(t *testing.T) {
	for _, p := range listed(t) {
		if !slices.Contains(pure, p.path()) {
			continue
		}
		for _, imported := range p.Imports {
			if reason, bad := impure[imported]; bad {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, reason)
			}
		}
		for _, name := range p.GoFiles {
			looksAtTheWorld(t, filepath.Join(p.Dir, name))
		}
	}
}

// looksAtTheWorld reports clocks and goroutines in a file.
func looksAtTheWorld(t *testing.T, path string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s: a goroutine: results must not depend on who is faster", files.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && slices.Contains(clocks, n.Sel.Name) {
				t.Errorf("%s: time.%s: the moment comes in as a parameter", files.Position(n.Pos()), n.Sel.Name)
			}
		}
		return true
	})
}

func TestBoundaries_TestOnlyCodeReachesNoBinary(t *testing.T) {
	mains := 0
	for _, p := range listed(t) {
		if p.Name != "main" || strings.HasPrefix(p.path(), "bench") {
			continue
		}
		mains++
		for _, dep := range p.Deps {
			for forbidden, reason := range testOnly {
				if dep == forbidden || strings.HasPrefix(dep, forbidden+"/") {
					t.Errorf("%s holds %s, which %s", p.ImportPath, dep, reason)
				}
			}
		}
	}
	if mains == 0 {
		t.Error("no binary was found")
	}
}

func TestBoundaries_EveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range listed(t) {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = ""
		}
		if p.Doc == "" || !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its documentation is %q; start it with %q", p.ImportPath, p.Doc, "Package "+p.Name+" …")
		}
		if p.Name != "main" && !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s: its documentation belongs into doc.go", p.ImportPath)
		}
	}
}

// longest is where a file certainly holds a second noun; from ~500 lines on
// one should look for it.
const longest = 700

func TestBoundaries_FilesAreShortEnoughToRead(t *testing.T) {
	for _, p := range listed(t) {
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.Count(text, []byte("\n"))
			if lines > longest {
				t.Errorf("%s has %d lines, more than %d: give its second noun a file of its own", path, lines, longest)
			}
		}
	}
}
