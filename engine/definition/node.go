package definition

import (
	"strconv"

	"perigee/engine/exactjson"
)

// node is one value of a document. Trees come from readYAML and readJSON, with
// places, or from a stored canonical text, where raw is set and the parts are
// made when they are asked for.
type node struct {
	kind    exactjson.Kind
	text    string // of a string: decoded; of a number or boolean: its JSON
	members []member
	items   []*node

	raw  exactjson.Value // of a stored definition
	path string          // JSON pointer; "" in a stored definition
	at   place
	// How it was written, for faults.
	style   style
	plain   string // the words of an unquoted scalar
	comment place  // of a # one space behind an unquoted scalar
}

type member struct {
	key string
	at  place
	*node
}

// style is how a scalar was written.
type style uint8

const (
	stylePlain style = iota
	styleSingle
	styleDouble // also every string of JSON
	styleBlock
)

// storedNode is the tree of a canonical text.
func storedNode(v exactjson.Value) *node {
	n := &node{kind: v.Kind(), raw: v}
	switch n.kind {
	case exactjson.KindString:
		n.text, _ = v.Text()
	case exactjson.KindNumber, exactjson.KindBool:
		n.text = string(v)
	}
	return n
}

// object is the members of an object in the order of the document.
func (n *node) object() []member {
	if n == nil || n.kind != exactjson.KindObject {
		return nil
	}
	if n.members == nil && n.raw != "" {
		for key, value := range n.raw.Members() {
			n.members = append(n.members, member{key: key, node: storedNode(value)})
		}
	}
	return n.members
}

// array is the elements of an array.
func (n *node) array() []*node {
	if n == nil || n.kind != exactjson.KindArray {
		return nil
	}
	if n.items == nil && n.raw != "" {
		for value := range n.raw.Elements() {
			n.items = append(n.items, storedNode(value))
		}
	}
	return n.items
}

// get is the member named key, or nil.
func (n *node) get(key string) *node {
	for _, m := range n.object() {
		if m.key == key {
			return m.node
		}
	}
	return nil
}

// keyPlace is where the key of the member named key stands.
func (n *node) keyPlace(key string) place {
	for _, m := range n.object() {
		if m.key == key {
			return m.at
		}
	}
	return place{}
}

func (n *node) isString() bool { return n != nil && n.kind == exactjson.KindString }

// value is the JSON text of the tree.
func (n *node) value() exactjson.Value {
	if n.raw != "" {
		return n.raw
	}
	return exactjson.Value(n.append(nil))
}

func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case exactjson.KindString:
		return exactjson.AppendQuoted(dst, n.text)
	case exactjson.KindNumber, exactjson.KindBool:
		return append(dst, n.text...)
	case exactjson.KindArray:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	case exactjson.KindObject:
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(exactjson.AppendQuoted(dst, m.key), ':')
			dst = m.node.append(dst)
		}
		return append(dst, '}')
	}
	return append(dst, exactjson.Null...)
}

// setPaths gives every node of the tree its JSON pointer.
func (n *node) setPaths(path string) {
	n.path = path
	for i, item := range n.items {
		item.setPaths(path + "/" + strconv.Itoa(i))
	}
	for _, m := range n.members {
		m.node.setPaths(exactjson.JoinPointer(path, m.key))
	}
}

// find is the descendant that has the given JSON pointer, or n.
func (n *node) find(pointer string) *node {
	if pointer == n.path {
		return n
	}
	for _, item := range n.items {
		if covers(item.path, pointer) {
			return item.find(pointer)
		}
	}
	for _, m := range n.members {
		if covers(m.node.path, pointer) {
			return m.node.find(pointer)
		}
	}
	return n
}

func covers(path, pointer string) bool {
	return len(pointer) >= len(path) && pointer[:len(path)] == path &&
		(len(pointer) == len(path) || pointer[len(path)] == '/')
}

// copied is the tree once more, for an alias, and its size in bytes.
func (n *node) copied(size *int) *node {
	c := *n
	*size += len(n.text) + 1
	if *size > maxExpanded {
		return &c
	}
	c.items, c.members = nil, nil
	for _, item := range n.items {
		c.items = append(c.items, item.copied(size))
	}
	for _, m := range n.members {
		*size += len(m.key)
		c.members = append(c.members, member{key: m.key, at: m.at, node: m.node.copied(size)})
	}
	return &c
}
