package expr

import (
	"unicode/utf8"

	"perigee/engine/exactjson"
	"perigee/engine/words"
)

// brief is a name or a number as a message shows it.
func brief(s string) string {
	s = words.Shorten(s, 60)
	for i := 0; i < len(s); i++ {
		if !isWordByte(s[i]) && s[i] != '.' && s[i] != '-' && s[i] < utf8.RuneSelf {
			return string(exactjson.FromString(s))
		}
	}
	return s
}

// didYouMean is a hint with the candidate that is nearest to name, or "".
func didYouMean(name string, candidates []string) string {
	if len(name) < 3 {
		return ""
	}
	best := words.Nearest(name, candidates)
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}
