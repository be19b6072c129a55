package definition

import (
	"fmt"
	"strings"
)

// firstOnLine reports whether the parser stopped at the first thing on a line.
func (m *misread) firstOnLine() bool {
	line := m.line(m.at.line)
	return strings.TrimSpace(line[:byteOf(line, m.at.column)]) == ""
}

// indentation is for a line whose indentation is that of none above.
func (m *misread) indentation() *Fault {
	if !m.firstOnLine() || !m.says("value is not allowed in this context", "non-map value is specified") {
		return nil
	}
	line := m.line(m.at.line)
	isEntry := strings.HasPrefix(strings.TrimSpace(line)+" ", "- ")
	indent := indentOf(line)
	nearest, found := level{}, false
	for _, l := range m.levels(m.at.line) {
		if l.entry != isEntry {
			continue
		}
		if l.indent == indent {
			return nil
		}
		if !found || apart(l.indent, indent) < apart(nearest.indent, indent) {
			nearest, found = l, true
		}
	}
	if !found {
		return nil
	}
	return m.fault(place{m.at.line, indent + 1}, fmt.Sprintf("line %d is indented by %d, its neighbours by %d", m.at.line, indent, nearest.indent),
		fmt.Sprintf("indent it by %d like line %d", nearest.indent, nearest.line))
}

func apart(a, b int) int { return max(a-b, b-a) }

// level is an indentation that a line may have: that of the keys of an object, or
// of the entries of a list.
type level struct {
	indent, line int
	entry        bool
}

// levels are those of the collections that are open before a line, the innermost
// first.
func (s source) levels(before int) []level {
	var levels []level
	const endless = 1 << 30
	for number, limit := before-1, endless; number > 0 && limit > 0; number-- {
		line := s.line(number)
		content := strings.TrimLeft(line, " ")
		if content == "" || content[0] == '#' || !likeKey.MatchString(line) && !strings.HasPrefix(content, "- ") {
			continue
		}
		var here []level
		for indent := len(line) - len(content); ; {
			entry := strings.HasPrefix(content, "- ")
			if indent < limit && (entry || likeKey.MatchString(content)) {
				here = append([]level{{indent, number, entry}}, here...)
			}
			if !entry {
				break
			}
			rest := strings.TrimLeft(content[1:], " ")
			indent += len(content) - len(rest)
			content = rest
		}
		levels = append(levels, here...)
		limit = min(limit, indentOf(line))
	}
	return levels
}

// indentOf is the number of spaces that a line begins with.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// keyIndent is the indentation of the key of a line, behind its dashes.
func keyIndent(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }
