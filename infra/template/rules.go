package template

import (
	"fmt"
	"slices"
	"strings"
)

// Surroundings are what a template is compared with.
type Surroundings struct {
	// Runbook is the text of docs/runbook.md.
	Runbook string
	// Variables tells whether functions read an environment variable.
	Variables func(name string) bool
	// Metrics are the names of metrics that the functions write.
	Metrics []string
	// Source tells whether there is a folder of source, such as functions/api.
	Source func(folder string) bool
}

// rule is what must hold, and why.
type rule struct {
	name  string
	check func(*Template, Surroundings) []string
}

// rules are all of them, in the order of the template.
var rules = []rule{
	{"a parameter that nothing reads, or that says nothing, misleads who deploys", parameters},
	{"functions run what is built for them, on the machine that it is built for", builds},
	{"functions read the environment that they are given", environment},
	{"the database is reached with a checked certificate and no written password, and logs no payload", databaseURLs},
	{"no function outlives the call that waits for it", timeouts},
	{"the functions together ask for at most 80 % of the connections there are", connections},
	{"what a function logs is kept for a bounded time, and its metrics are not filtered", logging},
	{"code never meets a schema older than itself", migration},
	{"permissions name what they are for", permissions},
	{"what calls workers and services is the tick alone, as far as parameters say", callers},
	{"what an authorizer guards has no way around it", routes},
	{"schedules are such as AWS runs", schedules},
	{"a tick that was lost is not repeated: the next one is there", tickRetries},
	{"the network has no way out that is paid for, or unwatched", network},
	{"data outlives the stack", data},
	{"an alarm tells somebody, and that one what to do", alarms},
}

// Check names what in a template breaks a rule, a line each.
func Check(source []byte, s Surroundings) ([]string, error) {
	t, err := Read(source)
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, r := range rules {
		for _, fault := range r.check(t, s) {
			faults = append(faults, fmt.Sprintf("%s (%s)", fault, r.name))
		}
	}
	return faults, nil
}

func parameters(t *Template, _ Surroundings) (faults []string) {
	all := object(t.root["Parameters"])
	var used []string
	for _, section := range []string{"Globals", "Rules", "Conditions", "Resources", "Outputs"} {
		used = append(used, references(t.root[section])...)
	}
	var grouped []string
	walk(at(t.root, "Metadata", "AWS::CloudFormation::Interface", "ParameterGroups"), nil, func(path []string, v any) {
		if name, ok := v.(string); ok && path[len(path)-1] == "Parameters" {
			grouped = append(grouped, name)
		}
	})
	for name := range all {
		if !slices.Contains(used, name) {
			faults = append(faults, fmt.Sprintf("Parameters: nothing reads %s", name))
		}
		if !slices.Contains(grouped, name) {
			faults = append(faults, fmt.Sprintf("Parameters: %s is in no group of Metadata", name))
		}
		if text(all[name], "Description") == "" {
			faults = append(faults, fmt.Sprintf("Parameters: %s has no Description", name))
		}
		if _, ok := object(all[name])["Default"]; !ok {
			faults = append(faults, fmt.Sprintf("Parameters: %s has no Default; a first deployment asks nothing", name))
		}
	}
	slices.Sort(faults)
	return faults
}

func schedules(t *Template, _ Surroundings) (faults []string) {
	for _, r := range t.resources("") {
		walk(r.all, nil, func(path []string, v any) {
			if len(path) == 0 || path[len(path)-1] != "ScheduleExpression" {
				return
			}
			for _, choice := range choices(v) {
				if s, ok := choice.(string); ok && !runs(s) {
					faults = append(faults, r.fault("%q is no schedule; the shortest is rate(1 minute)", s))
				}
			}
		})
	}
	return faults
}

// runs reports whether AWS takes a schedule: rate(1 minute), rate(5 hours), or
// cron with six fields.
func runs(expression string) bool {
	if inner, ok := strings.CutPrefix(expression, "cron("); ok {
		return len(strings.Fields(inner)) == 6
	}
	inner, ok := strings.CutPrefix(strings.TrimSuffix(expression, ")"), "rate(")
	count, unit, _ := strings.Cut(inner, " ")
	var n int
	if _, err := fmt.Sscanf(count, "%d", &n); !ok || err != nil || n < 1 {
		return false
	}
	singular := slices.Contains([]string{"minute", "hour", "day"}, unit)
	plural := slices.Contains([]string{"minutes", "hours", "days"}, unit)
	return n == 1 && singular || n > 1 && plural
}

func tickRetries(t *Template, _ Surroundings) (faults []string) {
	want := func(r resource, where ...string) {
		policy := object(r.get(where...))
		if _, ok := policy["MaximumRetryAttempts"]; !ok || number(policy, "MaximumRetryAttempts") != 0 {
			faults = append(faults, r.fault("MaximumRetryAttempts must be 0"))
		}
		if age := number(policy, "MaximumEventAgeInSeconds"); age != 60 {
			faults = append(faults, r.fault("MaximumEventAgeInSeconds must be 60, is %v", age))
		}
	}
	for _, r := range t.resources("AWS::Scheduler::Schedule") {
		want(r, "Target", "RetryPolicy")
	}
	for _, r := range t.resources(function) {
		if r.name == "TickFunction" {
			want(r, "EventInvokeConfig")
		}
	}
	return faults
}

func network(t *Template, _ Surroundings) (faults []string) {
	for _, r := range t.resources("") {
		switch r.kind {
		case "AWS::EC2::NatGateway", "AWS::EC2::InternetGateway":
			faults = append(faults, r.fault("a %s is not needed", r.kind))
		case "AWS::EC2::SecurityGroup":
			rules := list(r.get("SecurityGroupEgress"))
			if len(rules) == 0 {
				faults = append(faults, r.fault("without SecurityGroupEgress everything goes out"))
			}
			for _, rule := range rules {
				// The migration answers CloudFormation; its routes lead to S3 only.
				if text(rule, "CidrIp") == "0.0.0.0/0" && (r.name != "MigrateSecurityGroup" || number(rule, "FromPort") != 443) {
					faults = append(faults, r.fault("lets everything out to 0.0.0.0/0"))
				}
			}
			if r.get("SecurityGroupIngress") != nil {
				faults = append(faults, r.fault("its ingress belongs into resources that name a source group"))
			}
		case "AWS::EC2::SecurityGroupIngress":
			if r.get("SourceSecurityGroupId") == nil {
				faults = append(faults, r.fault("needs a SourceSecurityGroupId"))
			}
		case "AWS::EC2::SecurityGroupEgress":
			if text(r.get("CidrIp")) == "" {
				continue // to a group
			}
			port := r.get("FromPort")
			if r.all["Condition"] == nil || number(r.get(), "FromPort") != 443 && text(port, "Ref") != "OtlpPort" {
				faults = append(faults, r.fault("a way out needs a Condition, and port 443 or the collector's"))
			}
		}
	}
	return faults
}
