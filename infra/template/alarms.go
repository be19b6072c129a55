package template

import (
	"encoding/json"
	"regexp"
	"strings"
)

// alarmed are what there must be an alarm for, by the alarm's resource.
var alarmed = []string{
	"ErrorsAlarm", "ThrottlesAlarm", "ServerErrorsAlarm", "DurationAlarm", "TickAgeAlarm", "OldestDueAlarm",
	"OldestReadyAlarm", "ParkedAlarm", "ConnectionsAlarm", "CapacityAlarm",
}

func alarms(t *Template, s Surroundings) (faults []string) {
	var seen []string
	for _, r := range t.resources("AWS::CloudWatch::Alarm") {
		seen = append(seen, r.name)
		faults = append(faults, told(r, s)...)
		faults = append(faults, measured(r, s)...)
		// A dead tick writes nothing, which is what this alarm is for.
		want := "notBreaching"
		if r.name == "TickAgeAlarm" {
			want = "breaching"
		}
		if got := text(r.get("TreatMissingData")); got != want {
			faults = append(faults, r.fault("TreatMissingData must be %s, is %q", want, got))
		}
	}
	faults = append(faults, shown(t, s)...)
	for _, name := range alarmed {
		if !contains(seen, name) {
			faults = append(faults, "Resources: there is no "+name)
		}
	}
	return faults
}

// told checks that an alarm reaches the topic, and names its section.
func told(r resource, s Surroundings) (faults []string) {
	for _, actions := range []string{"AlarmActions", "OKActions"} {
		if !contains(references(r.get(actions)), "AlarmTopic") {
			faults = append(faults, r.fault("%s must have the AlarmTopic", actions))
		}
	}
	_, anchor, found := strings.Cut(text(r.get("AlarmDescription")), "docs/runbook.md#")
	if !found {
		return append(faults, r.fault("AlarmDescription must end with docs/runbook.md#section"))
	}
	if want := strings.TrimPrefix(text(r.get("AlarmName"), "Fn::Sub"), "${AWS::StackName}-"); anchor != want {
		faults = append(faults, r.fault("its section must be %s, is %s", want, anchor))
	}
	if heading := "\n## " + strings.ToUpper(anchor[:1]) + strings.ReplaceAll(anchor[1:], "-", " ") + "\n"; !strings.Contains(s.Runbook, heading) {
		faults = append(faults, r.fault("docs/runbook.md has no section %q", strings.TrimSpace(heading)))
	}
	return faults
}

// measured checks that what an alarm looks at is written by somebody.
func measured(r resource, s Surroundings) (faults []string) {
	metric := func(m any) {
		name := text(m, "MetricName")
		if text(m, "Namespace") != "Perigee" {
			return
		}
		if !contains(s.Metrics, name) {
			faults = append(faults, r.fault("no function writes the metric %s", name))
		}
		dimensions := list(at(m, "Dimensions"))
		if len(dimensions) != 1 || text(dimensions[0], "Name") != "Stack" || text(dimensions[0], "Value", "Ref") != "AWS::StackName" {
			faults = append(faults, r.fault("%s is written with the one dimension Stack", name))
		}
	}
	metric(r.get())
	for _, m := range list(r.get("Metrics")) {
		metric(at(m, "MetricStat", "Metric"))
	}
	return faults
}

var (
	// ourRows are the rows of a widget from its first one of namespace Perigee
	// on; "." repeats the namespace of the row above.
	ourRows = regexp.MustCompile(`(?s)\["Perigee", .*?\]\]`)
	rowName = regexp.MustCompile(`\["(?:Perigee|\.)", "(\w+)"`)
)

// shown checks that the dashboard shows metrics that are written.
func shown(t *Template, s Surroundings) (faults []string) {
	for _, r := range t.resources("AWS::CloudWatch::Dashboard") {
		body := list(r.get("DashboardBody", "Fn::Sub"))
		if len(body) == 0 || !json.Valid([]byte(text(body[0]))) {
			faults = append(faults, r.fault("DashboardBody must be !Sub of JSON"))
			continue
		}
		for _, widget := range ourRows.FindAllString(text(body[0]), -1) {
			for _, m := range rowName.FindAllStringSubmatch(widget, -1) {
				if !contains(s.Metrics, m[1]) {
					faults = append(faults, r.fault("no function writes the metric %s", m[1]))
				}
			}
		}
	}
	return faults
}
