package definition

import (
	"testing"
	"time"
)

func TestParseMoment_AgreesWithTheCalendar(t *testing.T) {
	for _, text := range []string{
		"1970-01-01T00:00:00Z", "2027-03-01T08:00:00Z", "2027-03-01T09:00:00.250+01:00", "2024-02-29T23:59:59.999Z",
		"2000-02-29T12:00:00-11:30", "1900-03-01T00:00:00Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "0000-03-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "2027-01-01T00:00:00.123456789Z", "2027-01-01T00:00:00.1Z", "1969-12-31T23:59:59.5Z",
	} {
		want, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseMoment(text)
		if err != nil || got != want.UnixMilli() {
			t.Errorf("ParseMoment(%q) = %d, %v; want %d", text, got, err, want.UnixMilli())
		}
	}
}

func TestParseMoment_LowerCaseLettersAreTaken(t *testing.T) {
	got, err := ParseMoment("1970-01-01t00:00:01z")
	if err != nil || got != 1000 {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestParseMoment_WhatIsNoMomentIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "2027", "2027-03-01", "2027-03-01T08:00:00", "2027-03-01 08:00:00Z", "2027-3-1T08:00:00Z", "2027-02-29T00:00:00Z",
		"2027-13-01T00:00:00Z", "2027-04-31T00:00:00Z", "2027-01-01T24:00:00Z", "2027-01-01T00:60:00Z", "2027-01-01T00:00:60Z",
		"2027-01-01T00:00:00.Z", "2027-01-01T00:00:00+25:00", "2027-01-01T00:00:00+0100", "2027-01-01T00:00:00Zx", "2027-01-01T00:00:00+",
	} {
		if got, err := ParseMoment(text); err == nil {
			t.Errorf("ParseMoment(%q) = %d, want an error", text, got)
		}
	}
}
