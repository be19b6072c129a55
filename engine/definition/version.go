package definition

import (
	"cmp"
	"fmt"
	"strings"
)

// Version is a version in the form of SemVer 2.0, without a build part.
type Version struct {
	Major, Minor, Patch string // digits
	Pre                 string // "" for a release
}

// String is the version as it was written.
func (v Version) String() string {
	text := v.Major + "." + v.Minor + "." + v.Patch
	if v.Pre != "" {
		text += "-" + v.Pre
	}
	return text
}

// maxVersion is the length of a version in bytes.
const maxVersion = 128

// ParseVersion reads MAJOR.MINOR.PATCH or MAJOR.MINOR.PATCH-PRE of SemVer 2.0.
// A build part (+…) is refused: versions that differ in nothing else would be
// of equal rank.
func ParseVersion(text string) (Version, error) {
	refuse := func(why string) (Version, error) {
		return Version{}, fmt.Errorf("version %s %s; expected a version of SemVer 2.0 such as 1.2.0 or 2.0.0-rc.1", shown(text), why)
	}
	if len(text) > maxVersion {
		return refuse("is too long")
	}
	if strings.Contains(text, "+") {
		return refuse("has a build part (+…), which is not taken")
	}
	core, pre, hasPre := strings.Cut(text, "-")
	numbers := strings.Split(core, ".")
	if len(numbers) != 3 {
		return refuse("is not three numbers")
	}
	for _, number := range numbers {
		if !isDigits(number) {
			return refuse("is not three numbers")
		}
		if len(number) > 1 && number[0] == '0' {
			return refuse("has a number that starts with 0")
		}
	}
	if hasPre {
		for _, id := range strings.Split(pre, ".") {
			if !isPreIdentifier(id) {
				return refuse("has an empty or wrong part behind the -")
			}
			if isDigits(id) && len(id) > 1 && id[0] == '0' {
				return refuse("has a number that starts with 0")
			}
		}
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2], Pre: pre}, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func isPreIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-') {
			return false
		}
	}
	return s != ""
}

// CompareVersions is the order of SemVer 2.0: negative where a comes before b,
// 0 where they rank alike. A text that is no version comes before all versions.
func CompareVersions(a, b string) int {
	va, errA := ParseVersion(a)
	vb, errB := ParseVersion(b)
	if errA != nil || errB != nil {
		switch {
		case errA != nil && errB != nil:
			return cmp.Compare(a, b)
		case errA != nil:
			return -1
		}
		return 1
	}
	return cmp.Or(
		compareDigits(va.Major, vb.Major),
		compareDigits(va.Minor, vb.Minor),
		compareDigits(va.Patch, vb.Patch),
		comparePre(va.Pre, vb.Pre),
	)
}

// compareDigits compares numbers of any size that have no leading zeros.
func compareDigits(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func comparePre(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		if c := comparePreIdentifier(as[i], bs[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func comparePreIdentifier(a, b string) int {
	switch {
	case isDigits(a) && isDigits(b):
		return compareDigits(a, b)
	case isDigits(a):
		return -1
	case isDigits(b):
		return 1
	}
	return cmp.Compare(a, b)
}
