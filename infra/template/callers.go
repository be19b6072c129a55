package template

import (
	"regexp"
	"strings"
)

// Who calls, and what it is given for that.
const (
	caller         = "TickFunction"
	callerRole     = "TickRole"
	callerGroup    = "CallsSecurityGroup"
	callerSecrets  = "PERIGEE_CALL_SECRETS"
	calledByCaller = "PushFunctionArns"
)

// callers checks that pushes and http.request leave by the tick function only,
// and that what it may invoke, read and reach are parameters.
func callers(t *Template, _ Surroundings) (faults []string) {
	t.variables(func(owner, name string, _ any) {
		if name == callerSecrets && owner != caller {
			faults = append(faults, owner+": "+name+" is for "+caller+" alone")
		}
		if strings.HasPrefix(name, "PERIGEE_SECRET_") {
			faults = append(faults, owner+": "+name+" is a secret in a variable; it belongs into the one of CallSecretArn")
		}
	})
	for _, r := range t.resources("") {
		faults = append(faults, invokes(r)...)
		if r.kind == function && r.name != caller && contains(references(r.get("VpcConfig")), callerGroup) {
			faults = append(faults, r.fault("%s is for %s alone", callerGroup, caller))
		}
	}
	if contains(references(at(t.root, "Globals", "Function", "VpcConfig")), callerGroup) {
		faults = append(faults, "Globals: "+callerGroup+" is for "+caller+" alone")
	}
	pattern, err := regexp.Compile("^(?:" + text(t.root["Parameters"], calledByCaller, "AllowedPattern") + ")$")
	if err != nil || pattern.MatchString("arn:aws:lambda:us-east-1:123456789012:function:*") || !pattern.MatchString("arn:aws:lambda:us-east-1:123456789012:function:render:live") {
		faults = append(faults, "Parameters: "+calledByCaller+" must take ARNs of single functions, and no wildcard")
	}
	return faults
}

// invokes checks who may invoke functions: the schedule its tick, and the
// caller those of the parameter.
func invokes(r resource) (faults []string) {
	if !strings.HasPrefix(r.kind, "AWS::IAM::") {
		return nil
	}
	walk(r.all["Properties"], nil, func(_ []string, v any) {
		statement := object(v)
		if statement["Effect"] != "Allow" || !contains(texts(statement["Action"]), "lambda:InvokeFunction") || r.name == "SchedulerRole" {
			return
		}
		if r.name != callerRole || text(statement["Resource"], "Ref") != calledByCaller {
			faults = append(faults, r.fault("only %s may invoke functions, and only those of %s", callerRole, calledByCaller))
		}
	})
	return faults
}
