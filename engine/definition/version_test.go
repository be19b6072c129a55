package definition

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompareVersions_IsTheOrderOfSemVer(t *testing.T) {
	want := []string{
		"no version", "0.0.1-0", "0.0.1", "0.1.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
		"1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0-1", "2.0.0-a-b", "2.0.0", "99999999999999999999.0.0", "100000000000000000000.0.0",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareVersions)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, v := range want {
		if CompareVersions(v, v) != 0 {
			t.Errorf("%s differs from itself", v)
		}
	}
}

func TestParseVersion_TakesSemVerWithoutBuild(t *testing.T) {
	for _, text := range []string{"0.0.0", "1.2.3", "10.20.30", "1.0.0-rc.1", "1.0.0-0a", "1.0.0--", "1.0.0-x-y.7"} {
		v, err := ParseVersion(text)
		if err != nil || v.String() != text {
			t.Errorf("ParseVersion(%q) = %v, %v", text, v, err)
		}
	}
	for text, want := range map[string]string{
		"": "three numbers", "1": "three numbers", "1.2": "three numbers", "v1.2.3": "three numbers", "1.2.3.4": "three numbers",
		"1.2.x": "three numbers", "01.2.3": "starts with 0", "1.2.03": "starts with 0", "1.2.3-": "wrong part", "1.2.3-a..b": "wrong part",
		"1.2.3-ä": "wrong part", "1.2.3-01": "starts with 0", "1.2.3+build": "build part", "1.2.3-rc+1": "build part", " 1.2.3": "three numbers",
		"1.2." + strings.Repeat("3", 200): "too long",
	} {
		if _, err := ParseVersion(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseVersion(%q): %v, want an error with %q", text, err, want)
		}
	}
}
