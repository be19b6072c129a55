package definition

import (
	"fmt"
	"strconv"
)

// ParseMoment reads an RFC 3339 date and time with its offset, such as
// 2027-03-01T08:00:00Z or 2027-03-01T09:00:00.250+01:00, as milliseconds since
// 1970 in UTC. Digits beyond the milliseconds are cut off. A leap second is
// refused: the milliseconds cannot say it.
func ParseMoment(text string) (ms int64, err error) {
	m := momentReader{text: text}
	year := m.digits(4)
	m.literal("-")
	month := m.digits(2)
	m.literal("-")
	day := m.digits(2)
	m.literal("Tt")
	hour := m.digits(2)
	m.literal(":")
	minute := m.digits(2)
	m.literal(":")
	second := m.digits(2)
	millis := m.fraction()
	offset := m.offset()
	if m.failed || m.rest() != "" {
		return 0, fmt.Errorf("%s is no moment; write it like 2027-03-01T08:00:00Z or 2027-03-01T09:00:00+01:00", shown(text))
	}
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, fmt.Errorf("%s names no moment: a month, day, hour, minute or second is out of its range", shown(text))
	}
	minutes := int64(daysSince1970(year, month, day))*1440 + int64(hour*60+minute-offset)
	return (minutes*60+int64(second))*1000 + int64(millis), nil
}

type momentReader struct {
	text   string
	pos    int
	failed bool
}

func (m *momentReader) rest() string { return m.text[m.pos:] }

func (m *momentReader) digits(n int) int {
	if len(m.rest()) < n {
		m.failed = true
		return 0
	}
	value := 0
	for _, c := range []byte(m.rest()[:n]) {
		if c < '0' || c > '9' {
			m.failed = true
			return 0
		}
		value = value*10 + int(c-'0')
	}
	m.pos += n
	return value
}

func (m *momentReader) literal(choices string) byte {
	if m.rest() != "" {
		for i := range len(choices) {
			if m.rest()[0] == choices[i] {
				m.pos++
				return choices[i]
			}
		}
	}
	m.failed = true
	return 0
}

// fraction reads .digits, if there, as milliseconds.
func (m *momentReader) fraction() int {
	if m.failed || m.rest() == "" || m.rest()[0] != '.' {
		return 0
	}
	m.pos++
	start := m.pos
	for m.rest() != "" && m.rest()[0] >= '0' && m.rest()[0] <= '9' {
		m.pos++
	}
	if m.pos == start {
		m.failed = true
		return 0
	}
	millis, _ := strconv.Atoi((m.text[start:m.pos] + "00")[:3])
	return millis
}

// offset reads Z or ±hh:mm as minutes east of UTC.
func (m *momentReader) offset() int {
	sign := m.literal("Zz+-")
	if m.failed || sign == 'Z' || sign == 'z' {
		return 0
	}
	hours := m.digits(2)
	m.literal(":")
	minutes := m.digits(2)
	if hours > 23 || minutes > 59 {
		m.failed = true
	}
	if sign == '-' {
		return -(hours*60 + minutes)
	}
	return hours*60 + minutes
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 counts in the Gregorian calendar, extended to all years. Years
// are taken to start in March, so that a leap day is a year's last.
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	const daysToMarch0 = 719469 // from 0000-03-00 to 1970-01-01
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*(month-3)+2)/5 + day - daysToMarch0
}

func floorDiv(a, b int) int {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}
