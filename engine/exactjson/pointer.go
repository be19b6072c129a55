package exactjson

import (
	"strings"
	"unicode/utf8"
)

var tokenEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// JoinPointer is the JSON pointer (RFC 6901) of the member or element named
// token in the value at pointer.
func JoinPointer(pointer, token string) string {
	if strings.ContainsAny(token, "~/") {
		token = tokenEscapes.Replace(token)
	}
	return pointer + "/" + token
}

// maxToken is how much of one key a SyntaxError repeats, in bytes.
const maxToken = 100

func pathToken(key []byte) string {
	if len(key) > maxToken {
		cut := maxToken
		for cut > 0 && !utf8.RuneStart(key[cut]) {
			cut--
		}
		return tokenEscapes.Replace(string(key[:cut])) + "…"
	}
	return tokenEscapes.Replace(string(key))
}
