package definition

import (
	"fmt"
	"math/big"
	"strings"
)

// maxDurationMS is 100 years of 365.25 days.
const maxDurationMS = 36525 * 24 * 3600 * 1000

// unit is one unit of a duration, in the order in which they must stand.
type unit struct {
	name string
	ms   int64
}

var (
	shortUnits   = []unit{{"d", 86_400_000}, {"h", 3_600_000}, {"m", 60_000}, {"s", 1000}, {"ms", 1}}
	isoDateUnits = []unit{{"W", 7 * 86_400_000}, {"D", 86_400_000}}
	isoTimeUnits = []unit{{"H", 3_600_000}, {"M", 60_000}, {"S", 1000}}
)

const durationForms = "write it like 500ms, 30s, 1h30m, 1.5h, 7d or P1DT2H"

// ParseDuration reads 500ms, 30s, 1h30m, 1.5h, 7d or the ISO 8601 form P1DT2H,
// up to 100 years, as milliseconds. Units stand from the largest to the
// smallest, each once; only the last number may have a fraction. What is no
// whole number of milliseconds is refused, never rounded. The error says what
// was expected and what came.
func ParseDuration(text string) (ms int64, err error) {
	const longest = 64
	switch {
	case text == "":
		return 0, fmt.Errorf("a duration is empty; %s", durationForms)
	case len(text) > longest:
		return 0, fmt.Errorf("a duration has %d characters; %s", len(text), durationForms)
	}
	total := new(big.Rat)
	switch {
	case text[0] == 'P':
		err = addISO(total, text)
	default:
		err = addUnits(total, text, text, shortUnits)
	}
	if err != nil {
		return 0, err
	}
	if !total.IsInt() {
		return 0, fmt.Errorf("duration %s is no whole number of milliseconds; write it exactly", shown(text))
	}
	if total.Cmp(big.NewRat(maxDurationMS, 1)) > 0 {
		return 0, fmt.Errorf("duration %s is longer than 100 years", shown(text))
	}
	return total.Num().Int64(), nil
}

func addISO(total *big.Rat, text string) error {
	date, clock, hasClock := strings.Cut(text[1:], "T")
	if i := strings.IndexAny(date, "YM"); i >= 0 {
		return fmt.Errorf("duration %s has years or months, which differ in length; write it in days", shown(text))
	}
	if date == "" && clock == "" || hasClock && clock == "" {
		return fmt.Errorf("duration %s has no number; %s", shown(text), durationForms)
	}
	if hasClock && strings.ContainsAny(date, ".,") {
		return fmt.Errorf("duration %s has a fraction before its last number; %s", shown(text), durationForms)
	}
	if date != "" {
		if err := addUnits(total, date, text, isoDateUnits); err != nil {
			return err
		}
	}
	if clock != "" {
		return addUnits(total, clock, text, isoTimeUnits)
	}
	return nil
}

// addUnits adds number-unit pairs until part is used up; whole is the duration
// as written, for messages.
func addUnits(total *big.Rat, part, whole string, units []unit) error {
	for part != "" {
		size := 0
		for size < len(part) && (part[size] >= '0' && part[size] <= '9' || part[size] == '.' || part[size] == ',') {
			size++
		}
		number, rest := strings.Replace(part[:size], ",", ".", 1), part[size:]
		if strings.Contains(part[:size], ",") && whole[0] != 'P' {
			return fmt.Errorf("duration %s has a comma; %s", shown(whole), durationForms)
		}
		digits, fraction, dotted := strings.Cut(number, ".")
		if digits == "" || dotted && (fraction == "" || strings.Contains(fraction, ".")) {
			return fmt.Errorf("duration %s: expected a number, got %s; %s", shown(whole), shown(part), durationForms)
		}
		used, next := takeUnit(rest, units)
		switch {
		case used == nil && rest == "":
			return fmt.Errorf("duration %s has a number without a unit; %s", shown(whole), durationForms)
		case used == nil:
			return fmt.Errorf("duration %s: expected a unit (each once, from the largest to the smallest), got %s; %s", shown(whole), shown(rest), durationForms)
		case dotted && len(rest) > len(used.name):
			return fmt.Errorf("duration %s has a fraction before its last number; %s", shown(whole), durationForms)
		}
		amount, _ := new(big.Rat).SetString(number)
		total.Add(total, amount.Mul(amount, big.NewRat(used.ms, 1)))
		part, units = rest[len(used.name):], next
	}
	return nil
}

// takeUnit finds the unit that text starts with, and the ones that may follow.
func takeUnit(text string, units []unit) (*unit, []unit) {
	letters := 0
	for letters < len(text) && !(text[letters] >= '0' && text[letters] <= '9') {
		letters++
	}
	for i := range units {
		if text[:letters] == units[i].name {
			return &units[i], units[i+1:]
		}
	}
	return nil, nil
}
