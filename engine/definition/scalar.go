package definition

import (
	"errors"
	"math/big"
	"regexp"
	"strings"

	"perigee/engine/exactjson"
)

var (
	coreInt   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	coreRadix = regexp.MustCompile(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
	coreFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	coreOther = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// resolvePlain says what an unquoted scalar is under YAML 1.2's core schema.
// text is its JSON, or the string itself; problem is set where JSON has no such
// number, and text is then 0.
func resolvePlain(plain string) (kind exactjson.Kind, text, problem string) {
	switch plain {
	case "", "~", "null", "Null", "NULL":
		return exactjson.KindNull, "null", ""
	case "true", "True", "TRUE":
		return exactjson.KindBool, "true", ""
	case "false", "False", "FALSE":
		return exactjson.KindBool, "false", ""
	}
	if c := plain[0]; c != '.' && c != '-' && c != '+' && (c < '0' || c > '9') {
		return exactjson.KindString, plain, ""
	}
	switch {
	case coreOther.MatchString(plain):
		return exactjson.KindNumber, "0", "JSON has no number " + plain
	case coreRadix.MatchString(plain):
		number, _ := new(big.Int).SetString(plain, 0)
		text = number.String()
	case coreInt.MatchString(plain), coreFloat.MatchString(plain):
		text = jsonNumber(plain)
	default:
		return exactjson.KindString, plain, ""
	}
	if _, err := exactjson.Parse([]byte(text)); err != nil {
		var syntax *exactjson.SyntaxError
		if errors.As(err, &syntax) {
			problem = syntax.Message
		}
		return exactjson.KindNumber, "0", problem
	}
	return exactjson.KindNumber, text, ""
}

// jsonNumber keeps the digits and writes the rest as JSON wants it: no plus, a
// digit on both sides of the point.
func jsonNumber(plain string) string {
	sign, digits := "", strings.TrimPrefix(plain, "+")
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	end := strings.IndexAny(digits, "eE")
	if end < 0 {
		end = len(digits)
	}
	mantissa, exponent := digits[:end], digits[end:]
	if strings.HasPrefix(mantissa, ".") {
		mantissa = "0" + mantissa
	}
	return sign + strings.TrimSuffix(mantissa, ".") + exponent
}
