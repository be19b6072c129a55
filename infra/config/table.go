package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Setting is one line of the table.
type Setting struct {
	Name    string // as in --Name
	Default string
	Meaning string // half a sentence for a person
	set     func(*Settings, string) error
}

// OnFunctions reports whether a setting is the functions' alone: it has a
// variable and no flag.
func (s Setting) OnFunctions() bool {
	return slices.ContainsFunc(functionTable, func(f Setting) bool { return f.Name == s.Name })
}

// Flag is the setting's flag: --session-timeout.
func (s Setting) Flag() string { return "--" + s.Name }

// Variable is the setting's environment variable: PERIGEE_SESSION_TIMEOUT.
func (s Setting) Variable() string {
	return "PERIGEE_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// table is every setting of a server.
var table = []Setting{
	{"listen", "127.0.0.1:7474", "address to listen on; port 0 takes a free one",
		address(func(s *Settings) *string { return &s.Listen })},
	{"database", "perigee.db", "file of SQLite, or postgres://… URL",
		text(func(s *Settings) *string { return &s.Database })},
	{"database-mode", DatabaseDirect, "direct, or pooled behind a proxy of Postgres that pools transactions (pgbouncer, RDS Proxy)",
		choice(func(s *Settings) *string { return &s.DatabaseMode }, DatabaseDirect, DatabasePooled)},
	{"database-connections", "8", "connections to Postgres at most",
		count(func(s *Settings) *int { return &s.DatabaseConnections })},

	{"session-timeout", "30s", "silence after which a worker is suspected to be lost",
		duration(func(s *Settings) *time.Duration { return &s.Engine.SessionTimeout })},
	{"heartbeat-interval", "5s", "how often workers are asked to say that they live",
		duration(func(s *Settings) *time.Duration { return &s.Engine.HeartbeatInterval })},
	{"cancel-grace", "10m", "how long a worker may go on after its execution began to wind down",
		duration(func(s *Settings) *time.Duration { return &s.Engine.CancelGrace })},
	{"default-attempt-timeout", "24h", "timeout of one attempt of a task whose definition names none",
		duration(func(s *Settings) *time.Duration { return &s.Engine.DefaultAttemptTimeout })},
	{"max-idle-poll", "15s", "longest wait between an idle worker's polls on functions, where polls are not held",
		duration(func(s *Settings) *time.Duration { return &s.Engine.MaxIdlePoll })},
	{"max-redeliveries", "3", "how often an attempt whose worker was lost is handed out again; 0: never",
		limit(func(s *Settings) *int { return &s.Engine.MaxRedeliveries })},
	{"max-active-executions", "0", "executions that run at once, children not counted; 0: no limit",
		limit(func(s *Settings) *int { return &s.Engine.MaxActiveExecutions })},
	{"max-fan-out", "10000", "elements of one \"for\"; 0: no limit",
		limit(func(s *Settings) *int { return &s.Engine.MaxFanOut })},
	{"max-history-events", "50000", "events of one execution; 0: no limit",
		limit(func(s *Settings) *int { return &s.Engine.MaxHistoryEvents })},
	{"max-payload-bytes", "1MiB", "one input, result, signal or computed value; 0: only what fits into a call, 64 MiB",
		size(func(s *Settings) *int { return &s.Engine.MaxPayloadBytes })},
	{"max-join-bytes", "16MiB", "the items of one \"for\", or its joined outputs; 0: no limit",
		size(func(s *Settings) *int { return &s.Engine.MaxJoinBytes })},
	{"cache-bytes", "64MiB", "memory for states of running executions; 0: none is kept",
		size(func(s *Settings) *int { return &s.Engine.CacheBytes })},

	{"enable-http-adapter", "false", "run the built-in task http.request",
		boolean(func(s *Settings) *bool { return &s.EnableHTTPAdapter })},
	{"http-allow", "", "private networks that http.request and pushes may reach all the same, such as 10.1.0.0/16,127.0.0.1/32", networks},
	{"routes", "", "tasks whose workers are called instead of polling: a file of JSON, or the JSON itself (docs/push.md)",
		optional(func(s *Settings) *string { return &s.Routes })},
	{"tick-mode", TickPrecise, "when timers, retries and deadlines are looked at: precise, minute or, on functions, on-demand",
		choice(func(s *Settings) *string { return &s.TickMode }, TickPrecise, TickMinute, TickOnDemand)},
	{"log-level", "info", "debug, info, warn or error", logLevel},
	{"log-format", LogText, "text or json",
		choice(func(s *Settings) *string { return &s.LogFormat }, LogText, LogJSON)},
	{"otlp-endpoint", "", "where traces go: base URL of a collector of OpenTelemetry (OTLP over HTTP), such as http://127.0.0.1:4318; without it none are made", otlpEndpoint},
	{"otlp-headers", "", "headers for the collector, such as its key: NAME=VALUE,NAME=VALUE with values escaped by %; they are in no log", otlpHeaders},
}

// functionTable is what functions on AWS have beside it.
var functionTable = []Setting{
	{"stack", "", "name of the installation, a dimension of its metrics",
		optional(func(s *Settings) *string { return &s.Stack })},
	{"database-auth", AuthPassword, "where the database's password comes from: password (the URL), secret (Secrets Manager), iam or dsql (tokens of IAM)",
		choice(func(s *Settings) *string { return &s.DatabaseAuth }, AuthPassword, AuthSecret, AuthIAM, AuthDSQL)},
	{"database-secret", "", "ARN or name of the secret with the database's username and password as JSON",
		optional(func(s *Settings) *string { return &s.DatabaseSecret })},
	{"database-ca", "", "file of PEM beside the function, with the authorities of the database's certificate; without it the system's and those of RDS",
		optional(func(s *Settings) *string { return &s.DatabaseCA })},
	{"database-app-user", "", "database user of the other functions, which migrate makes; without it none is made",
		optional(func(s *Settings) *string { return &s.DatabaseAppUser })},
	{"database-app-arns", "", "ARNs of the roles that may connect as that user, separated by commas, for Aurora DSQL",
		optional(func(s *Settings) *string { return &s.DatabaseAppARNs })},
	{"admin-token", "", "first admin token, of which migrate stores the hash",
		optional(func(s *Settings) *string { return &s.AdminToken })},
	{"auth", AuthTokens, "who says who calls: tokens (Perigee's own), jwt or iam (an authorizer of the HTTP API)",
		choice(func(s *Settings) *string { return &s.Auth }, AuthTokens, AuthJWT, AuthPrincipal)},
	{"auth-claim", "perigee_role", "with jwt, the claim that holds the role",
		text(func(s *Settings) *string { return &s.AuthClaim })},
	{"auth-roles", "", "with jwt and iam, which claim value or principal ARN has which role: VALUE=ROLE,VALUE=ROLE", authRoles},
	{"call-secrets", "", "ARN or name of the secret with the secrets of http.request and pushes, as JSON {\"NAME\": \"…\"}; without it they are variables PERIGEE_SECRET_NAME",
		optional(func(s *Settings) *string { return &s.CallSecrets })},
	{"wake-group", "", "group of the schedule that is set to the next wake-up, in tick mode on-demand",
		optional(func(s *Settings) *string { return &s.WakeGroup })},
	{"wake-role", "", "ARN of the role by which EventBridge Scheduler calls the tick function, in tick mode on-demand",
		optional(func(s *Settings) *string { return &s.WakeRole })},
	{"wake-target", "", "ARN of the tick function, in tick mode on-demand",
		optional(func(s *Settings) *string { return &s.WakeTarget })},
}

// Table lists the settings of a server in the order of the documentation.
func Table() []Setting { return slices.Clone(table) }

// Find is the setting of a name. It panics where there is none: names are
// constants of the program.
func Find(name string) Setting {
	for _, s := range table {
		if s.Name == name {
			return s
		}
	}
	panic(fmt.Sprintf("config.Find: no setting is called %q", name))
}

// Markdown is the table as docs/operations.md shows it.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	for _, s := range slices.Concat(table, functionTable) {
		flag, shown := "`"+s.Flag()+"`", ""
		if s.OnFunctions() {
			flag = "functions only"
		}
		if s.Default != "" {
			shown = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", flag, s.Variable(), shown, s.Meaning)
	}
	return b.String()
}
