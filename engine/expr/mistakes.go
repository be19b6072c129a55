package expr

import (
	"fmt"
	"slices"
	"strings"
)

// What authors write who know another language better, and what it is called here.

// wordOperator is a hint for a word that is an operator elsewhere.
func wordOperator(t, next lexeme) string {
	if t.kind != lexemeWord {
		return ""
	}
	switch strings.ToLower(t.text) {
	case "and":
		return "write && for and"
	case "or":
		return "write || for or"
	case "not":
		if next.kind == lexemeWord && next.text == "in" {
			return "write !(a in b) for a not in b"
		}
		return "write ! for not"
	case "is":
		return "write == for is, != for is not"
	case "mod":
		return "write % for mod"
	case "eq", "equals":
		return "write == to compare"
	}
	return ""
}

var strayHints = map[string]string{
	"=": "write == to compare", ":=": "write == to compare", "===": "write ==", "!==": "write !=", "<>": "write !=", "=<": "write <=",
	"&": "write && for and", "|": "write || for or", "++": "write + once",
	"??": "write a.?b.orValue(c) for a value that may be missing", "?:": ternaryHint,
	"${": "an expression is written without ${ } inside", "->": lambdaHint, "#": "a comment begins with //", ";": "an expression gives one value",
	"“": straightQuotes, "”": straightQuotes, "„": straightQuotes, "‘": straightQuotes, "’": straightQuotes,
}

const (
	ternaryHint    = "write condition ? value : other value"
	lambdaHint     = "write a macro as map(x, x + 1): the variable, a comma, what to do with it"
	straightQuotes = `texts stand in straight quotes: "…" or '…'`
)

// stray is the fault of what no expression holds.
func (s *syntaxReader) stray(t lexeme, value bool) *syntaxFault {
	what := "an operator"
	if value {
		what = "a value"
	}
	hint := strayHints[t.text]
	last := t.text[len(t.text)-1:]
	switch {
	case t.unclosed():
		return &syntaxFault{t.start, "expected a " + last + " at the end of this text, got the end of the line", "close it with another " + last}
	case t.text == "=" && s.awaitsColon():
		return expected("a : behind this key", t, "")
	case t.text == "=>" && s.previous().kind == lexemeWord && s.around() != nil && s.around().behind:
		hint = lambdaHint
	case t.text == "=>":
		hint = "write >="
	case hint == "" && value:
		hint = `names are of letters a to z, digits and _; texts stand in quotes`
	}
	return expected(what, t, hint)
}

// escape is the fault of a text with a \ that does not go with what follows.
func (s *syntaxReader) escape(t lexeme) *syntaxFault {
	at := wrongEscape(t.text)
	return &syntaxFault{
		t.start + at, fmt.Sprintf(`expected an escape such as \n or \\ in this text, got %s`, t.text[at:at+1+len(firstRune(t.text[at+1:]))]),
		`write \\ for a \, or r'…' for a text that has no escapes`,
	}
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

// parserHints are for messages of the parser about what it could read.
var parserHints = []struct{ prefix, message, hint string }{
	{"invalid argument to has() macro", "has() takes a member, not a value of its own", "write has(input.a)"},
	{"argument is not an identifier", "expected a name for the variable of this macro, got another expression", lambdaHint},
	{"argument must be a simple name", "expected a name for the variable of this macro, got another expression", lambdaHint},
	{"invalid int literal", "this number does not fit into 64 bits", ""},
}

// explainParser puts a message of the parser into our words.
func explainParser(message string) (text, hint string) {
	if word, ok := strings.CutPrefix(message, "reserved identifier: "); ok {
		hint = "use another name"
		if word == "if" {
			hint = ternaryHint
		}
		return word + " is a word that is kept for later", hint
	}
	for _, known := range parserHints {
		if strings.HasPrefix(message, known.prefix) {
			return known.message, known.hint
		}
	}
	return message, ""
}

// meantFunctions are names of functions elsewhere, in lower case, with those of
// ours that do it. A text with a blank is a hint as it stands.
var meantFunctions = map[string]string{
	"toupper": "upperAscii", "touppercase": "upperAscii", "upper": "upperAscii", "uppercase": "upperAscii", "ucase": "upperAscii",
	"tolower": "lowerAscii", "tolowercase": "lowerAscii", "lower": "lowerAscii", "lowercase": "lowerAscii", "lcase": "lowerAscii",
	"len": "size", "length": "size", "count": "size", "strip": "trim", "substr": "substring", "includes": "contains", "regex": "matches", "test": "matches",
	"str": "string", "tostring": "string", "parseint": "int", "toint": "int", "integer": "int",
	"float": "double", "number": "double", "parsefloat": "double", "tofloat": "double", "todouble": "double", "tonumber": "double",
	"any": "exists", "some": "exists", "every": "all", "select": "map", "foreach": "map", "where": "filter", "unique": "distinct", "sorted": "sort", "range": "lists.range",
	"max": "math.greatest", "min": "math.least", "datetime": "timestamp", "date": "timestamp",
	"year": "getFullYear", "getyear": "getFullYear", "month": "getMonth", "day": "getDayOfMonth", "getday": "getDayOfWeek", "hour": "getHours", "minute": "getMinutes",
	"now": "write now, without ( )", "today": "write now, without ( )", "utcnow": "write now, without ( )",
	"not": "write ! for not", "if": ternaryHint, "concat": "write a + b", "append": "write list + [element]", "push": "write list + [element]",
	"coalesce": orValueHint, "default": orValueHint, "get": orValueHint, "getordefault": orValueHint, "isempty": "write size(…) == 0", "empty": "write size(…) == 0",
	"keys": "write map(k, k): a map is walked by its keys", "values": "write m.map(k, m[k]): a map is walked by its keys",
	"find": "write filter(x, …)[?0]", "reduce": "there is no fold but sum() and join()",
	"json": jsonHint, "tojson": jsonHint, "parsejson": jsonHint, "fromjson": jsonHint,
	"uuid": noRandomness, "random": noRandomness, "rand": noRandomness,
}

const (
	orValueHint  = "write a.?b.orValue(c) for a value that may be missing"
	jsonHint     = `a template writes JSON inside of a text: "${input.a} …"`
	noRandomness = "an expression gives the same each time; execution.id is unique, a worker can make more"
)

// functionHint is a hint for the name of a function that there is not.
func functionHint(name string, functions []string) string {
	last := name[strings.LastIndex(name, ".")+1:]
	meant := meantFunctions[strings.ToLower(last)]
	if strings.Contains(meant, " ") {
		return meant
	}
	if meant != "" {
		return "did you mean " + meant + "?"
	}
	for _, function := range functions {
		if _, inside, found := strings.Cut(function, "."); found && inside == name {
			return "did you mean " + function + "?"
		}
	}
	return didYouMean(name, functions)
}

// macros are those whose first argument names a variable.
var macros = []string{"map", "filter", "all", "exists", "exists_one", "sortBy", "optMap", "optFlatMap"}

// unknownFunction says that there is no function of a name, or none with what it
// is given here: macros are unknown under other arguments.
func unknownFunction(name string, functions []string) (message, hint string) {
	switch {
	case !slices.Contains(functions, name):
		return "there is no function " + brief(name), functionHint(name, functions)
	case name == "has":
		return "has takes one argument, a member", "write has(input.a)"
	case slices.Contains(macros, name):
		return name + " takes a variable and what to do with it", fmt.Sprintf("write .%s(x, …)", name)
	}
	return brief(name) + " takes other arguments", ""
}

// meantNames are names of values elsewhere, in lower case.
var meantNames = map[string]string{
	"datetime": "did you mean now?", "date": "did you mean now?", "today": "did you mean now?",
	"nil": "did you mean null?", "none": "did you mean null?", "undefined": "did you mean null?", "true": "did you mean true?", "false": "did you mean false?",
	"env": "there is no environment: what differs between stages is input, or lives in workers",
}
