package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// key names a figure: "S1 sequential-3" of "postgres".
type key struct{ name, store string }

// sheet collects samples of figures.
type sheet struct {
	samples map[key][]float64
	units   map[key]string
	order   []key
}

func newSheet() *sheet {
	return &sheet{samples: map[key][]float64{}, units: map[key]string{}}
}

// add notes a sample. Several of one figure become their median.
func (s *sheet) add(name, store string, value float64, unit string) {
	k := key{name, store}
	if _, known := s.samples[k]; !known {
		s.order = append(s.order, k)
	}
	s.samples[k] = append(s.samples[k], value)
	s.units[k] = unit
}

// value is the median of a figure's samples.
func (s *sheet) value(k key) (float64, bool) {
	samples := s.samples[k]
	if len(samples) == 0 {
		return 0, false
	}
	return median(samples), true
}

// line is one figure as it is printed.
type line struct {
	Name  string  `json:"name"`
	Store string  `json:"store,omitempty"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// RatioToLimit compares with what the same run measured as Limit.
	RatioToLimit float64 `json:"ratio_to_limit,omitempty"`
	Limit        string  `json:"limit,omitempty"`
	// Target and Met are there for figures that have a target.
	Target string `json:"target,omitempty"`
	Met    *bool  `json:"met,omitempty"`
}

// lines are the figures in the order in which they were first measured, then
// the comparisons.
func (s *sheet) lines() []line {
	var lines []line
	for _, k := range s.order {
		value, _ := s.value(k)
		l := line{Name: k.name, Store: k.store, Value: value, Unit: s.units[k]}
		if limit, ok := limits[k.name]; ok {
			if at, ok := s.value(key{limit, k.store}); ok && at != 0 {
				l.RatioToLimit, l.Limit = value/at, limit
			}
		}
		lines = append(lines, l)
	}
	for _, t := range targets {
		if l, ok := s.compare(t); ok {
			lines = append(lines, l)
		}
	}
	return lines
}

// compare makes the line of a target, if its figures were measured.
func (s *sheet) compare(t target) (line, bool) {
	value, ok := s.value(key{t.name, t.store})
	if !ok {
		return line{}, false
	}
	l := line{Name: t.name, Store: t.store, Value: value, Unit: s.units[key{t.name, t.store}]}
	if t.of != "" {
		of, ok := s.value(key{t.of, t.store})
		if !ok || of == 0 {
			return line{}, false
		}
		l.Name, l.Value, l.Unit = t.name+" / "+t.of, value/of, "ratio"
	}
	met := l.Value <= t.bound
	l.Target = fmt.Sprintf("≤ %g", t.bound)
	if t.atLeast {
		met, l.Target = l.Value >= t.bound, fmt.Sprintf("≥ %g", t.bound)
	}
	l.Met = &met
	return l, true
}

// print writes JSON lines for programs and a table for people.
func (s *sheet) print(out, people io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	table := tabwriter.NewWriter(people, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nfigure\tstore\tvalue\tunit\tcompared with\tratio\ttarget\t")
	for _, l := range s.lines() {
		if err := encoder.Encode(l); err != nil {
			return err
		}
		ratio, verdict := "", ""
		if l.Limit != "" {
			ratio = figure(l.RatioToLimit)
		}
		if l.Met != nil {
			verdict = l.Target + " missed"
			if *l.Met {
				verdict = l.Target + " met"
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", l.Name, l.Store, figure(l.Value), l.Unit, l.Limit, ratio, verdict)
	}
	return table.Flush()
}

// figure shows three significant digits.
func figure(v float64) string {
	switch {
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// median is the middle of a list, or between the two in the middle.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
