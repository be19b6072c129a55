package definition

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"perigee/engine/exactjson"
)

// readYAML makes the tree of a YAML document. The parser is used for structure
// only: what a scalar means is decided here, by its text (resolvePlain), so
// that digits stay and the rules are those of YAML 1.2's core schema.
func readYAML(src source, text string) (*node, []Fault) {
	file, fault := parseYAML(src, text)
	if fault != nil {
		return nil, []Fault{*fault}
	}
	r := yamlReader{source: src, anchors: map[string]*node{}}
	root := r.document(file)
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return root, nil
}

// parseYAML guards against the parser: it has been seen to panic on texts that
// no author would write.
func parseYAML(src source, text string) (file *ast.File, fault *Fault) {
	defer func() {
		if recover() != nil {
			file, fault = nil, refuse(CodeSyntax, place{1, 1}, "this text cannot be read as YAML", "check its indentation and brackets, or register it as JSON")
		}
	}()
	file, err := parser.Parse(lexer.Tokenize(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlSyntax(src, err)
	}
	return file, nil
}

type yamlReader struct {
	source
	faults  []Fault
	anchors map[string]*node // nil while the anchor's own value is read
	size    int              // bytes that aliases stand for
}

func (r *yamlReader) fault(code string, tk *token.Token, message, hint string) {
	r.faults = append(r.faults, *refuse(code, placeOf(tk), message, hint))
}

func placeOf(tk *token.Token) place {
	if tk == nil || tk.Position == nil {
		return place{1, 1}
	}
	return place{max(1, tk.Position.Line), max(1, tk.Position.Column)}
}

func (r *yamlReader) document(file *ast.File) *node {
	var root *node
	seen := false
	for _, doc := range file.Docs {
		directive, isDirective := doc.Body.(*ast.DirectiveNode)
		switch {
		case isDirective:
			r.fault(CodeYAML, directive.GetToken(), "directives (%…) are not taken", "remove the line")
		case seen && (doc.Start != nil || doc.Body != nil):
			tk := doc.Start
			if tk == nil {
				tk = doc.Body.GetToken()
			}
			r.fault(CodeYAML, tk, "a second document starts here", "one file holds one definition: move the rest to a file of its own")
		default:
			seen = doc.Start != nil || doc.Body != nil
			if doc.Body != nil {
				root = r.value(doc.Body, 0)
			}
		}
	}
	if root == nil && len(r.faults) == 0 {
		r.faults = append(r.faults, *refuse(CodeSyntax, place{1, 1}, "the document is empty", "a definition has at least name, version and steps"))
	}
	return root
}

// value reads one node; open is the number of collections around it.
func (r *yamlReader) value(n ast.Node, open int) *node {
	if open > maxDepth {
		r.fault(CodeTooLarge, n.GetToken(), fmt.Sprintf("the document nests more than %d deep here", maxDepth), "")
		return &node{kind: exactjson.KindNull}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n.GetToken(), n.IsFlowStyle, n.Values, open)
	case *ast.MappingValueNode:
		return r.mapping(n.GetToken(), false, []*ast.MappingValueNode{n}, open)
	case *ast.SequenceNode:
		list := &node{kind: exactjson.KindArray, at: placeOf(n.GetToken())}
		for _, item := range n.Values {
			list.items = append(list.items, r.value(item, open+1))
		}
		return list
	case *ast.LiteralNode:
		return &node{kind: exactjson.KindString, text: n.Value.Value, at: placeOf(n.GetToken()), style: styleBlock}
	case *ast.AnchorNode:
		return r.anchor(n, open)
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		hint := "write the value without it; quotes make text"
		if mayHoldExpression(r.line(n.GetToken().Position.Line)) {
			hint = "quote the expression: an unquoted ! starts a tag"
		}
		r.fault(CodeYAML, n.GetToken(), "tags (!…) are not taken", hint)
		return &node{kind: exactjson.KindNull}
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.InfinityNode, *ast.NanNode:
		return r.scalar(n.GetToken())
	case nil:
		return &node{kind: exactjson.KindNull, at: place{1, 1}}
	}
	r.fault(CodeYAML, n.GetToken(), "this part of YAML is not taken here", "write it as plain keys, lists and values")
	return &node{kind: exactjson.KindNull}
}

func (r *yamlReader) mapping(tk *token.Token, flow bool, values []*ast.MappingValueNode, open int) *node {
	object := &node{kind: exactjson.KindObject, at: placeOf(tk)}
	seen := make(map[string]bool, len(values))
	for i, v := range values {
		key, at, ok := r.key(v.Key)
		if i == 0 && !flow {
			object.at = at
		}
		if ok && seen[key] {
			r.fault(CodeDuplicateKey, v.Key.GetToken(), fmt.Sprintf("the key %s stands twice here", shown(key)), "keep one of the two")
			ok = false
		}
		value := r.value(v.Value, open+1)
		if ok {
			seen[key] = true
			object.members = append(object.members, member{key: key, at: at, node: value})
		}
	}
	return object
}

// key reads a key; ok is false where it is none that can be kept.
func (r *yamlReader) key(n ast.MapKeyNode) (key string, at place, ok bool) {
	tk := n.GetToken()
	at = placeOf(tk)
	switch n.(type) {
	case *ast.MergeKeyNode:
		r.fault(CodeYAML, tk, "merge keys (<<) are not taken", "write the keys out; retry_policies and defaults share what steps have in common")
	case *ast.MappingKeyNode:
		r.fault(CodeYAML, tk, "keys behind a ? are not taken", "write key: value")
	case *ast.StringNode, *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		if quoted(tk) {
			return r.scalar(tk).text, at, true
		}
		kind, _, _ := resolvePlain(tk.Value)
		if kind == exactjson.KindString {
			return tk.Value, at, true
		}
		r.fault(CodeYAML, tk, fmt.Sprintf("a key must be text, %s is a %s", shown(tk.Value), kind), "quote it")
	default:
		r.fault(CodeYAML, tk, "a key must be text", "write it out, without & * or !")
	}
	return "", at, false
}

func quoted(tk *token.Token) bool {
	return tk.Type == token.SingleQuoteType || tk.Type == token.DoubleQuoteType
}

func (r *yamlReader) scalar(tk *token.Token) *node {
	n := &node{at: placeOf(tk)}
	switch tk.Type {
	case token.SingleQuoteType:
		n.kind, n.text, n.style = exactjson.KindString, tk.Value, styleSingle
		return n
	case token.DoubleQuoteType:
		n.kind, n.text, n.style = exactjson.KindString, tk.Value, styleDouble
		if strings.Contains(n.text, "\uFFFD") && r.hasLoneSurrogate(n.at) {
			r.fault(CodeEncoding, tk, "an escape in this text is half of a surrogate pair, which is no character", "write both halves or leave it out")
		}
		return n
	case token.ImplicitNullType:
		n.kind = exactjson.KindNull
		return n
	}
	kind, text, problem := resolvePlain(tk.Value)
	if problem != "" {
		r.fault(CodeNumber, tk, problem, "quote it, if it is meant as text")
	}
	n.kind, n.text, n.plain = kind, text, tk.Value
	n.comment = r.commentBehind(tk)
	return n
}

var surrogateEscape = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)

func (r *yamlReader) hasLoneSurrogate(at place) bool {
	for line := at.line; line <= len(r.lines); line++ {
		if surrogateEscape.MatchString(r.line(line)) {
			return true
		}
		if line > at.line && strings.Contains(r.line(line), `"`) {
			break
		}
	}
	return false
}

// commentBehind is the place of a comment that stands exactly one space behind
// an unquoted scalar: it may be a cut-off part of the value.
func (r *yamlReader) commentBehind(tk *token.Token) place {
	next := tk.Next
	if next == nil || next.Type != token.CommentType || next.Position.Line != tk.Position.Line {
		return place{}
	}
	line := r.line(next.Position.Line)
	hash := byteOf(line, next.Position.Column)
	if hash < 2 || hash >= len(line) || line[hash] != '#' || line[hash-1] != ' ' || line[hash-2] == ' ' {
		return place{}
	}
	return placeOf(next)
}

func (r *yamlReader) anchor(n *ast.AnchorNode, open int) *node {
	name := n.Name.GetToken().Value
	r.anchors[name] = nil
	value := r.value(n.Value, open)
	r.anchors[name] = value
	return value
}

// alias writes the anchored value out once more.
func (r *yamlReader) alias(n *ast.AliasNode) *node {
	tk := n.Value.GetToken()
	value, known := r.anchors[tk.Value]
	switch {
	case !known:
		r.fault(CodeYAML, n.GetToken(), fmt.Sprintf("no anchor &%s stands above this alias", tk.Value), "")
	case value == nil:
		r.fault(CodeYAML, n.GetToken(), fmt.Sprintf("the alias *%s stands inside the value that it names", tk.Value), "")
	case r.size > maxExpanded:
	default:
		c := value.copied(&r.size)
		if r.size > maxExpanded {
			r.fault(CodeTooLarge, n.GetToken(), fmt.Sprintf("the aliases of this document stand for more than %d bytes", maxExpanded), "")
		}
		return c
	}
	return &node{kind: exactjson.KindNull}
}
