package definition

import (
	"strings"
	"testing"
)

func TestParseDuration_EveryFormIsExact(t *testing.T) {
	for text, want := range map[string]int64{
		"500ms": 500, "30s": 30_000, "1h30m": 5_400_000, "1.5h": 5_400_000, "7d": 604_800_000,
		"0s": 0, "0.5s": 500, "1d1h1m1s1ms": 90_061_001, "0.001s": 1, "1h0.5m": 3_630_000, "007s": 7000,
		"P1DT2H": 93_600_000, "PT30S": 30_000, "PT0.25S": 250, "PT1,5H": 5_400_000, "P2W": 1_209_600_000, "P1.5D": 129_600_000,
		"36525d": 3_155_760_000_000, "0.10s": 100,
	} {
		got, err := ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseDuration_WhatIsNotExactIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "empty",
		"30":                          "without a unit",
		"1.5":                         "without a unit",
		"-5s":                         "expected a number",
		"+5s":                         "expected a number",
		" 5s":                         "expected a number",
		"5s ":                         "expected a unit",
		"5 s":                         "expected a unit",
		"5S":                          "expected a unit",
		"5sec":                        "expected a unit",
		"5s3":                         "without a unit",
		"1m1h":                        "expected a unit",
		"1s1s":                        "expected a unit",
		"1.5h30m":                     "fraction before its last",
		"1.h":                         "expected a number",
		".5h":                         "expected a number",
		"1..5h":                       "expected a number",
		"1,5h":                        "comma",
		"0.5ms":                       "whole number of milliseconds",
		"1.0005s":                     "whole number of milliseconds",
		"36526d":                      "longer than 100 years",
		"99999999999999999999999h":    "longer than 100 years",
		"P":                           "no number",
		"PT":                          "no number",
		"P1DT":                        "no number",
		"P1Y":                         "years or months",
		"P1M":                         "years or months",
		"P1D2H":                       "expected a unit",
		"P0.5DT1H":                    "fraction before its last",
		"p1d":                         "expected a number",
		"5µs":                         "expected a unit",
		strings.Repeat("1", 70) + "s": "71 characters",
	} {
		got, err := ParseDuration(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDuration(%q) = %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"1h30m", "1.5h", "P1DT2H", "PT0.5S", "500ms", "-1s", "36525d", "1,5s", "P1W"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := ParseDuration(text)
		if err == nil && (ms < 0 || ms > maxDurationMS) {
			t.Errorf("ParseDuration(%q) = %d", text, ms)
		}
	})
}
