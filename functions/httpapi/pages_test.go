package httpapi_test

import (
	"bytes"
	"flag"
	"fmt"
	"html/template"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"perigee/engine/history"
	"perigee/functions/httpapi"
)

var update = flag.Bool("update", false, "write docs.html anew from openapi.yaml")

// TestDocs_PageIsThatOfTheDocument renders openapi.yaml and compares. The page
// is made here and embedded, so that the server needs no renderer.
func TestDocs_PageIsThatOfTheDocument(t *testing.T) {
	page, err := render(httpapi.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("docs.html", page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("docs.html")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page) {
		t.Error("docs.html is not that of openapi.yaml; run: go test ./functions/httpapi -run TestDocs -update")
	}
}

func TestDocs_PagesLoadNothingFromElsewhere(t *testing.T) {
	s, _ := newServer(t)
	for _, path := range []string{"/", "/docs"} {
		got := s.Do(t, get(path))
		if policy := got.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s has the policy %q", path, policy)
		}
		body := got.Body
		for _, bad := range []string{"<script", "src=", "@import", "url(", `href="http`, `href="//`} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
}

func TestDocs_EveryReferenceOnThePageLeadsSomewhere(t *testing.T) {
	page := string(httpapiPage(t))
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+m[1]+`"`) {
			t.Errorf("nothing has the id %s", m[1])
		}
	}
}

func httpapiPage(t *testing.T) []byte {
	t.Helper()
	s, _ := newServer(t)
	return []byte(s.Do(t, get("/docs")).Body)
}

// ordered is a mapping of the document in its own order.
type ordered = yaml.MapSlice

type (
	docView struct {
		Title, Summary string
		About          template.HTML
		Tags           []tagView
		Schemas        []schemaView
	}
	tagView struct {
		Name       string
		About      template.HTML
		Operations []operationView
	}
	operationView struct {
		ID, Method, Path, Summary, Roles string
		About                            template.HTML
		Parameters, Responses            []rowView
		Body                             template.HTML
	}
	schemaView struct {
		Name  string
		About template.HTML
		Rows  []rowView
		Open  bool
	}
	rowView struct {
		Name, Note string
		Type       template.HTML
		About      template.HTML
	}
)

func render(document []byte) ([]byte, error) {
	var doc ordered
	if err := yaml.UnmarshalWithOptions(document, &doc, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	r := renderer{doc}
	info := child(doc, "info")
	view := docView{Title: str(info, "title"), Summary: str(info, "summary"), About: prose(str(info, "description"))}
	for _, tag := range items(doc, "tags") {
		view.Tags = append(view.Tags, r.tag(tag))
	}
	for _, item := range child(child(doc, "components"), "schemas") {
		view.Schemas = append(view.Schemas, r.schema(item.Key.(string), item.Value.(ordered)))
	}
	var b bytes.Buffer
	err := page.Execute(&b, view)
	return b.Bytes(), err
}

type renderer struct{ doc ordered }

func (r renderer) tag(tag ordered) tagView {
	view := tagView{Name: str(tag, "name"), About: prose(str(tag, "description"))}
	for _, path := range child(r.doc, "paths") {
		node := path.Value.(ordered)
		for _, op := range node {
			if op.Key == "parameters" || !slices.Contains(strs(op.Value.(ordered), "tags"), view.Name) {
				continue
			}
			view.Operations = append(view.Operations, r.operation(path.Key.(string), op.Key.(string), node, op.Value.(ordered)))
		}
	}
	return view
}

func (r renderer) operation(path, method string, around, op ordered) operationView {
	view := operationView{
		ID: str(op, "operationId"), Method: strings.ToUpper(method), Path: path, Summary: str(op, "summary"),
		About: prose(str(op, "description")), Roles: strings.Join(strs(op, "x-perigee-roles"), ", "),
	}
	for _, p := range append(items(around, "parameters"), items(op, "parameters")...) {
		p = r.resolve(p)
		schema := child(p, "schema")
		view.Parameters = append(view.Parameters, rowView{Name: str(p, "name"), Note: str(p, "in"), Type: r.typeOf(schema), About: inline(str(p, "description"))})
	}
	var bodies []string
	for _, content := range child(child(op, "requestBody"), "content") {
		bodies = append(bodies, string(r.typeOf(child(content.Value.(ordered), "schema")))+" as "+content.Key.(string))
	}
	view.Body = template.HTML(strings.Join(bodies, ", or "))
	for _, response := range child(op, "responses") {
		node := r.resolve(response.Value.(ordered))
		row := rowView{Name: response.Key.(string), About: inline(str(node, "description"))}
		for _, content := range child(node, "content") {
			row.Type = r.typeOf(child(content.Value.(ordered), "schema"))
		}
		view.Responses = append(view.Responses, row)
	}
	return view
}

func (r renderer) schema(name string, node ordered) schemaView {
	view := schemaView{Name: name, About: inline(str(node, "description")), Open: value(node, "additionalProperties") == true}
	required := strs(node, "required")
	for _, member := range child(node, "properties") {
		row := rowView{Name: member.Key.(string), Type: r.typeOf(member.Value.(ordered)), About: inline(str(member.Value.(ordered), "description"))}
		if slices.Contains(required, row.Name) {
			row.Note = "required"
		}
		view.Rows = append(view.Rows, row)
	}
	if len(view.Rows) == 0 {
		view.Rows = []rowView{{Type: r.typeOf(node)}}
	}
	return view
}

// resolve follows references.
func (r renderer) resolve(node ordered) ordered {
	for ref := str(node, "$ref"); ref != ""; ref = str(node, "$ref") {
		node = r.doc
		for _, token := range strings.Split(ref, "/")[1:] {
			node = child(node, token)
		}
	}
	return node
}

// typeOf says in a few words what a schema takes.
func (r renderer) typeOf(node ordered) template.HTML {
	if name, ok := strings.CutPrefix(str(node, "$ref"), "#/components/schemas/"); ok {
		return template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, name, name))
	}
	var parts []string
	switch kind := value(node, "type").(type) {
	case string:
		parts = append(parts, kind)
	case []any:
		parts = append(parts, strings.ReplaceAll(strings.Trim(fmt.Sprint(kind), "[]"), " ", " or "))
	}
	if inner := child(node, "items"); inner != nil {
		parts[0] = strings.Replace(parts[0], "array", "array of "+string(r.typeOf(inner)), 1)
	}
	if inner, ok := value(node, "additionalProperties").(ordered); ok {
		parts = append(parts, "of "+string(r.typeOf(inner)))
	}
	if members := child(node, "properties"); members != nil {
		var names []string
		for _, m := range members {
			names = append(names, fmt.Sprintf("<code>%s</code>: %s", m.Key, r.typeOf(m.Value.(ordered))))
		}
		parts = append(parts, "{"+strings.Join(names, ", ")+"}")
	}
	for _, one := range items(node, "anyOf") {
		parts = append(parts, string(r.typeOf(one)))
	}
	if list, ok := value(node, "enum").([]any); ok {
		parts = append(parts, "one of "+strings.ReplaceAll(strings.Trim(strings.ReplaceAll(fmt.Sprint(list), "<nil>", "null"), "[]"), " ", ", "))
	}
	if c := value(node, "const"); c != nil {
		parts = append(parts, fmt.Sprintf("always %v", c))
	}
	for _, bound := range []struct{ key, word string }{{"minimum", "from"}, {"maximum", "to"}, {"default", "default"}} {
		if v := value(node, bound.key); v != nil {
			parts = append(parts, fmt.Sprintf("%s %v", bound.word, v))
		}
	}
	if len(parts) == 0 {
		return "any JSON"
	}
	return template.HTML(strings.Join(parts, " "))
}

func value(node ordered, key string) any {
	for _, item := range node {
		if item.Key == key {
			return item.Value
		}
	}
	return nil
}

func child(node ordered, key string) ordered {
	inner, _ := value(node, key).(ordered)
	return inner
}

func str(node ordered, key string) string {
	s, _ := value(node, key).(string)
	return s
}

func items(node ordered, key string) []ordered {
	var out []ordered
	list, _ := value(node, key).([]any)
	for _, one := range list {
		out = append(out, one.(ordered))
	}
	return out
}

func strs(node ordered, key string) []string {
	var out []string
	list, _ := value(node, key).([]any)
	for _, one := range list {
		out = append(out, one.(string))
	}
	return out
}

var code = regexp.MustCompile("`([^`]+)`")

// inline makes a sentence of the document HTML.
func inline(text string) template.HTML {
	return template.HTML(code.ReplaceAllString(template.HTMLEscapeString(strings.TrimSpace(text)), "<code>$1</code>"))
}

// prose does so with paragraphs.
func prose(text string) template.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		fmt.Fprintf(&b, "<p>%s</p>\n", inline(paragraph))
	}
	return template.HTML(b.String())
}

var page = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} HTTP API</title>
<style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 0 auto; padding: 1rem 1rem 6rem; }
code, .path { font-family: ui-monospace, monospace; font-size: .92em; }
nav ul { columns: 20rem; padding-left: 0; list-style: none; }
nav li { break-inside: avoid; }
section.op { border-top: 1px solid #8886; margin-top: 2rem; }
.method { display: inline-block; min-width: 3.4em; font-weight: 700; }
.roles { opacity: .75; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8883; }
caption { text-align: left; font-weight: 600; }
</style>
<h1>{{.Title}} HTTP API</h1>
<p>{{.Summary}} This page is made from the <a href="v1/openapi.yaml">OpenAPI document</a>.</p>
{{.About}}
<nav>
{{range .Tags}}<h3>{{.Name}}</h3>
<ul>
{{range .Operations}}<li><a href="#{{.ID}}"><span class="method">{{.Method}}</span> <span class="path">{{.Path}}</span></a></li>
{{end}}</ul>
{{end}}</nav>
{{range .Tags}}<h2>{{.Name}}</h2>
{{.About}}{{range .Operations}}<section class="op" id="{{.ID}}">
<h3><span class="method">{{.Method}}</span> <span class="path">{{.Path}}</span></h3>
<p><strong>{{.Summary}}</strong> <span class="roles">{{if .Roles}}Roles: {{.Roles}}.{{else}}Without a token.{{end}}</span></p>
{{.About}}{{if .Parameters}}<table><caption>Parameters</caption>
{{range .Parameters}}<tr><td><code>{{.Name}}</code></td><td>{{.Note}}</td><td>{{.Type}}</td><td>{{.About}}</td></tr>
{{end}}</table>
{{end}}{{if .Body}}<p>Body: {{.Body}}</p>
{{end}}<table><caption>Answers</caption>
{{range .Responses}}<tr><td>{{.Name}}</td><td>{{.Type}}</td><td>{{.About}}</td></tr>
{{end}}</table>
</section>
{{end}}{{end}}<h2>Schemas</h2>
{{range .Schemas}}<section class="op" id="{{.Name}}">
<h3>{{.Name}}</h3>
{{if .About}}<p>{{.About}}</p>
{{end}}<table>
{{range .Rows}}<tr>{{if .Name}}<td><code>{{.Name}}</code></td><td>{{.Note}}</td>{{end}}<td>{{.Type}}</td><td>{{.About}}</td></tr>
{{end}}</table>
{{if .Open}}<p>And further members.</p>
{{end}}</section>
{{end}}</html>
`))

// TestDocs_ReferenceHasEveryRouteAndEvent compares docs/http.md with the source.
func TestDocs_ReferenceHasEveryRouteAndEvent(t *testing.T) {
	text, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range httpapi.Routes() {
		roles := map[string]string{"": "", "admin": "| admin |", "admin operator": "| admin, operator |", "admin worker": "| admin, worker |", "admin operator reader": "| all but worker |"}[strings.Join(rt.Roles, " ")]
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta("`"+rt.Method+" "+rt.Path+"`") + `.*$`).FindString(string(text))
		if row == "" || !strings.Contains(row, roles) {
			t.Errorf("the row of %s %s is %q, expected the roles %s", rt.Method, rt.Path, row, roles)
		}
	}
	var events []history.Type
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		events = append(events, history.Type(m[1]))
	}
	if diff := cmp.Diff(history.Types, events); diff != "" {
		t.Errorf("events (-source +docs/http.md):\n%s", diff)
	}
}
