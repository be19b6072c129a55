package console

import (
	"fmt"
	"time"
)

// Duration is a length of time in milliseconds, as short as it can be read:
// 120ms, 4.2s, 3m05s, 2h03m, 3d04h.
func Duration(ms int64) string {
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	switch ms = max(0, ms); {
	case ms < second:
		return fmt.Sprintf("%dms", ms)
	case ms < minute:
		return fmt.Sprintf("%d.%ds", ms/second, ms%second/100)
	case ms < hour:
		return fmt.Sprintf("%dm%02ds", ms/minute, ms%minute/second)
	case ms < day:
		return fmt.Sprintf("%dh%02dm", ms/hour, ms%hour/minute)
	}
	return fmt.Sprintf("%dd%02dh", ms/day, ms%day/hour)
}

// Moment is epoch milliseconds as date and time in a zone, to the second.
func Moment(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format("2006-01-02 15:04:05")
}

// Clock is epoch milliseconds as the time of day, to the millisecond.
func Clock(ms int64, zone *time.Location) string {
	return time.UnixMilli(ms).In(zone).Format("15:04:05.000")
}

// Near is a moment near to now: the time of day where the day is the same,
// else with its date.
func Near(ms, nowMS int64, zone *time.Location) string {
	at, now := time.UnixMilli(ms).In(zone), time.UnixMilli(nowMS).In(zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04:05")
}
