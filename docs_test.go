package perigee_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// The pages that no other test holds to the source: what ARCHITECTURE.md names
// must exist, links must lead somewhere, every page must be found, and
// docs/deploy.md has the parameters of template.yaml.

const architecture = "ARCHITECTURE.md"

func TestDocs_WhatArchitectureNamesExists(t *testing.T) {
	page := read(t, architecture)
	code := declared(t)
	named := 0
	for _, name := range quoted(page) {
		switch {
		case strings.HasPrefix(name, "/"):
			// a route; the OpenAPI document is compared with them
		case pathName.MatchString(name):
			named++
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names `%s`, which is not there", architecture, name)
			}
		case symbolName.MatchString(name) && name != "http.request":
			named++
			if !code[name] {
				t.Errorf("%s names `%s`, which is not declared", architecture, name)
			}
		case testName.MatchString(name):
			named++
			if !code[name] {
				t.Errorf("%s names the test `%s`, which is not there", architecture, name)
			}
		}
	}
	if named < 50 {
		t.Errorf("%s names %d things only: does this test still read it?", architecture, named)
	}
}

func TestDocs_ArchitectureMapsEveryFolder(t *testing.T) {
	page := read(t, architecture)
	for _, p := range listed(t) {
		parts := strings.Split(p.path(), "/")
		folder := parts[0]
		if folder == "engine" && len(parts) > 1 {
			folder += "/" + parts[1]
		}
		if folder != "" && !strings.Contains(page, "`"+folder+"`") {
			t.Errorf("%s: its map has no `%s`", architecture, folder)
		}
	}
}

// A path is a file or folder from the top, a symbol a declaration of a package
// of ours (package.Name, package.Type.Method).
var (
	pathName   = regexp.MustCompile(`^[A-Za-z_.-]+(/[A-Za-z0-9_.-]+)+$|^[a-z_]+\.(go|md|yaml)$|^(bench|blackbox|docs|engine|examples|functions|infra|local|sdk|store|tools)$`)
	symbolName = regexp.MustCompile(`^[a-z]+\.[A-Za-z]+(\.[A-Za-z]+)?$`)
	testName   = regexp.MustCompile(`^Test[A-Za-z]+_?[A-Za-z0-9]*$`)
)

var span = regexp.MustCompile("`([^`\n]+)`")

// quoted lists what stands between backticks, each once.
func quoted(page string) []string {
	var names []string
	for _, m := range span.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// declared has each package.Name, package.Type.Method, package.Type.Field and
// test of the module.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, p := range listed(t) {
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range tree.Decls {
				for _, name := range namesOf(decl) {
					names[p.Name+"."+name] = true
					names[name] = names[name] || strings.HasPrefix(name, "Test")
				}
			}
		}
	}
	return names
}

func namesOf(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return []string{decl.Name.Name}
		}
		of := decl.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if of, ok := of.(*ast.Ident); ok {
			return []string{of.Name + "." + decl.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
				for _, member := range membersOf(spec.Type) {
					names = append(names, spec.Name.Name+"."+member)
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// membersOf are the fields of a struct, or the methods of an interface.
func membersOf(of ast.Expr) (names []string) {
	var list *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		list = of.Fields
	case *ast.InterfaceType:
		list = of.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^()\s]+)\)`)

func TestDocs_LinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", page, m[1])
			}
		}
	}
}

// anchors are the fragments by which a page's headings are linked to.
func anchors(page string) (list []string) {
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		text := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return r
			}
			return -1
		}, text))
	}
	return list
}

func TestDocs_IndexHasEveryPage(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		page, inDocs := strings.CutPrefix(filepath.ToSlash(page), "docs/")
		if inDocs && page != "README.md" && !strings.Contains(index, "("+page+")") {
			t.Errorf("docs/README.md does not link to %s: say whom it is for", page)
		}
	}
}

func TestDocs_DecisionsAreNumberedAndComplete(t *testing.T) {
	files, err := filepath.Glob("docs/decisions/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d decisions were found, %v", len(files), err)
	}
	for i, file := range files { // sorted
		number := fmt.Sprintf("%04d", i+1)
		if !strings.HasPrefix(filepath.Base(file), number+"-") {
			t.Errorf("%s: the next number is %s", file, number)
		}
		text := read(t, file)
		if !strings.HasPrefix(text, "# "+number+": ") {
			t.Errorf("%s: it begins with %q", file, "# "+number+": …")
		}
		for _, part := range []string{"\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: it has no part %s", file, strings.TrimSpace(part))
			}
		}
	}
}

func TestDocs_DeployHasEveryParameterWithItsDefault(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "template.yaml"), "\nParameters:\n")
	text, _, found := strings.Cut(text, "\nRules:\n")
	if !found {
		t.Fatal("template.yaml has no Parameters in front of Rules")
	}
	var parameters yaml.MapSlice
	if err := yaml.Unmarshal([]byte(text), &parameters); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, p := range parameters {
		shown := ""
		if v := fmt.Sprint(p.Value.(map[string]any)["Default"]); v != "" {
			shown = "`" + v + "` "
		}
		want = append(want, fmt.Sprintf("| `%s` | %s|", p.Key, shown))
	}
	_, table, _ := strings.Cut(read(t, "docs/deploy.md"), "\n## Parameters\n")
	table, _, _ = strings.Cut(table, "\n## ")
	got := regexp.MustCompile("(?m)^\\| `[A-Za-z]+` \\| (`[^`]+` )?\\|").FindAllString(table, -1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parameters and their defaults (-template.yaml +docs/deploy.md):\n%s", diff)
	}
}

// pages are the Markdown pages of the repository.
func pages(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			list = append(list, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
