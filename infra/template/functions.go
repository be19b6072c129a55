package template

import (
	"strings"
)

const function = "AWS::Serverless::Function"

// gatewaySeconds is when the HTTP API gives up on a function.
const gatewaySeconds = 30

func builds(t *Template, s Surroundings) (faults []string) {
	globals := at(t.root, "Globals", "Function")
	if text(globals, "Runtime") != "provided.al2023" {
		faults = append(faults, "Globals: Runtime must be provided.al2023")
	}
	if a := list(at(globals, "Architectures")); len(a) != 1 || a[0] != "arm64" {
		faults = append(faults, "Globals: Architectures must be [arm64], which the Makefile builds for")
	}
	if text(globals, "CodeUri") != "." {
		faults = append(faults, "Globals: CodeUri must be ., the folder of the Makefile")
	}
	for _, r := range t.resources(function) {
		folder := "functions/" + strings.ToLower(strings.TrimSuffix(r.name, "Function"))
		if !strings.HasSuffix(r.name, "Function") || !s.Source(folder) {
			faults = append(faults, r.fault("`make build-%s` has nothing to build: there is no folder %s", r.name, folder))
		}
		if text(r.all, "Metadata", "BuildMethod") != "makefile" {
			faults = append(faults, r.fault("BuildMethod must be makefile; SAM has no builder for Go on provided.al2023"))
		}
		for _, own := range []string{"Runtime", "Architectures", "CodeUri"} {
			if r.get(own) != nil {
				faults = append(faults, r.fault("%s belongs into Globals", own))
			}
		}
	}
	return faults
}

// variables visits all variables that functions are given.
func (t *Template) variables(visit func(owner, name string, value any)) {
	for name, value := range object(at(t.root, "Globals", "Function", "Environment", "Variables")) {
		visit("Globals", name, value)
	}
	for _, r := range t.resources(function) {
		for name, value := range object(r.get("Environment", "Variables")) {
			visit(r.name, name, value)
		}
	}
}

func environment(t *Template, s Surroundings) (faults []string) {
	t.variables(func(owner, name string, _ any) {
		if !s.Variables(name) {
			faults = append(faults, owner+": no function reads the variable "+name)
		}
	})
	return faults
}

func databaseURLs(t *Template, _ Surroundings) (faults []string) {
	t.variables(func(owner, name string, value any) {
		if name != "PERIGEE_DATABASE" {
			return
		}
		for _, choice := range choices(value) {
			url := text(choice, "Fn::Sub")
			if !strings.HasSuffix(url, "?sslmode=verify-full") {
				faults = append(faults, owner+": "+url+" must end with ?sslmode=verify-full")
			}
			user, _, _ := strings.Cut(strings.TrimPrefix(url, "postgres://"), "@")
			if strings.Contains(user, ":") {
				faults = append(faults, owner+": the URL of PERIGEE_DATABASE holds a password")
			}
		}
	})
	for _, r := range t.resources("AWS::RDS::DBClusterParameterGroup") {
		if text(r.get("Parameters"), "rds.force_ssl") != "1" {
			faults = append(faults, r.fault("rds.force_ssl must be \"1\""))
		}
		if text(r.get("Parameters"), "log_min_duration_statement") != "-1" {
			faults = append(faults, r.fault("log_min_duration_statement must be \"-1\": it logs parameters, which are payloads"))
		}
	}
	for _, r := range t.resources("AWS::RDS::DBCluster") {
		if r.get("MasterUserPassword") != nil || r.get("EnableIAMDatabaseAuthentication") != true {
			faults = append(faults, r.fault("must use IAM authentication, and no password"))
		}
	}
	return faults
}

func timeouts(t *Template, _ Surroundings) (faults []string) {
	var behind []string
	for _, r := range t.resources("AWS::ApiGatewayV2::Integration") {
		behind = append(behind, references(r.get("IntegrationUri"))...)
		if ms := number(r.get(), "TimeoutInMillis"); ms != gatewaySeconds*1000 {
			faults = append(faults, r.fault("TimeoutInMillis must be %d, is %v", gatewaySeconds*1000, ms))
		}
	}
	for _, r := range t.resources(function) {
		for _, choice := range choices(r.get("Timeout")) {
			seconds := number(map[string]any{"n": choice}, "n")
			if contains(behind, r.name) && seconds >= gatewaySeconds {
				faults = append(faults, r.fault("a time-out of %v s is not below the %d s of the HTTP API", seconds, gatewaySeconds))
			}
		}
		if r.name == "TickFunction" {
			faults = append(faults, tickTimeout(r)...)
		}
	}
	return faults
}

// tickTimeout checks that a tick lasts until the next one, and longer where it
// makes calls: the longest takes four minutes.
func tickTimeout(r resource) []string {
	branches := list(r.get("Timeout", "Fn::If"))
	if len(branches) != 3 || branches[0] != "MakesCalls" {
		return []string{r.fault("Timeout must be !If [MakesCalls, …, …]: a call may take longer than a tick")}
	}
	calls, alone := number(map[string]any{"n": branches[1]}, "n"), number(map[string]any{"n": branches[2]}, "n")
	var faults []string
	if alone <= 60 || alone > 70 {
		faults = append(faults, r.fault("a time-out of %v s leaves a gap before the next minute's tick, or costs more; expected 61 to 70", alone))
	}
	if calls < 305 || calls > 330 {
		faults = append(faults, r.fault("a time-out of %v s cuts off calls, which may take 240 s after the last pass, or costs more; expected 305 to 330", calls))
	}
	return faults
}

// connectionsPerACU is what Aurora takes at one ACU; for each further one it takes more.
const connectionsPerACU = 189

func connections(t *Template, _ Surroundings) (faults []string) {
	parameter := func(name string) float64 { return number(t.root["Parameters"], name, "Default") }
	var sum float64
	for _, r := range t.resources(function) {
		reserved := choices(r.get("ReservedConcurrentExecutions"))[0] // the most, of a tick that makes calls
		n := number(map[string]any{"n": reserved}, "n")
		if name := text(reserved, "Ref"); name != "" {
			n = parameter(name)
		}
		if n == 0 {
			faults = append(faults, r.fault("has no reserved concurrency: it may take every connection there is"))
		}
		sum += n
	}
	if most := 0.8 * connectionsPerACU * parameter("MaxCapacity"); sum > most {
		faults = append(faults, "Parameters: the functions hold up to "+
			format(sum)+" connections; 80 % of what Aurora takes at the default MaxCapacity are "+format(most))
	}
	return faults
}

func logging(t *Template, _ Surroundings) (faults []string) {
	config := at(t.root, "Globals", "Function", "LoggingConfig")
	if text(config, "LogFormat") != "JSON" || text(config, "SystemLogLevel") != "WARN" {
		faults = append(faults, "Globals: LoggingConfig must have LogFormat JSON and SystemLogLevel WARN")
	}
	if text(config, "ApplicationLogLevel") != "TRACE" {
		faults = append(faults, "Globals: ApplicationLogLevel must be TRACE: another level drops the lines of metrics")
	}
	groups := map[string]resource{}
	for _, r := range t.resources("AWS::Logs::LogGroup") {
		groups[r.name] = r
		if r.get("RetentionInDays") == nil {
			faults = append(faults, r.fault("has no RetentionInDays: it would keep everything, for ever"))
		}
	}
	for _, r := range t.resources(function) {
		group := groups[text(r.get("LoggingConfig", "LogGroup"), "Ref")]
		want := "/aws/lambda/" + text(r.get("FunctionName"), "Fn::Sub")
		if got := text(group.get("LogGroupName"), "Fn::Sub"); got != want {
			faults = append(faults, r.fault("needs a log group of its own, named %s; has %q", want, got))
		}
	}
	return faults
}

// needed are the database that a migration connects to and its ways there, to
// the database's secret and to S3, each where the parameters ask for it.
var needed = []string{
	"WriterInstance", "MigrateToDatabase", "S3Endpoint", "SubnetARoutes", "SubnetBRoutes", "SecretsManagerEndpoint", "MigrateToEndpoints",
}

func migration(t *Template, _ Surroundings) (faults []string) {
	for _, r := range t.resources(function) {
		if r.name != "MigrateFunction" && r.all["DependsOn"] != "Migration" {
			faults = append(faults, r.fault("must depend on Migration"))
		}
	}
	for _, r := range t.resources("Custom::Migration") {
		if text(r.get("Release"), "Ref") != "MigrateFunction.Version" {
			faults = append(faults, r.fault("Release must be !Ref MigrateFunction.Version, or a new release would not migrate"))
		}
		if r.get("ServiceTimeout") == nil {
			faults = append(faults, r.fault("without ServiceTimeout a migration that dies holds the stack for an hour"))
		}
		for _, name := range needed {
			if !contains(references(r.get("Needs")), name) {
				faults = append(faults, r.fault("Needs must name %s, or the migration may run before it is there", name))
			}
		}
	}
	return faults
}
