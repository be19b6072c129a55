package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"perigee/engine"
)

// Modes of the tick; see Settings.TickMode.
const (
	TickPrecise  = "precise"   // whenever something is due
	TickMinute   = "minute"    // one pass every minute
	TickOnDemand = "on-demand" // when a schedule calls that was set to the next moment; functions only
)

// Modes of the connections to Postgres.
const (
	DatabaseDirect = "direct"
	DatabasePooled = "pooled" // through a proxy that pools transactions
)

// Where the password of the database comes from.
const (
	AuthPassword = "password"
	AuthSecret   = "secret"
	AuthIAM      = "iam"
	AuthDSQL     = "dsql"
)

// Who says who calls a function.
const (
	AuthTokens    = "tokens"
	AuthJWT       = "jwt"
	AuthPrincipal = "iam"
)

// Formats of the log.
const (
	LogText = "text"
	LogJSON = "json"
)

// Settings are the values of all settings.
type Settings struct {
	// Engine has the limits and timeouts; its other fields are the caller's.
	Engine engine.Options
	// Listen is the address to listen on, host:port; port 0 takes a free one.
	Listen string
	// Database is a file of SQLite or a URL of Postgres.
	Database string
	// DatabaseMode is DatabaseDirect or DatabasePooled, of Postgres only.
	DatabaseMode string
	// DatabaseConnections bounds the connections to Postgres.
	DatabaseConnections int
	// EnableHTTPAdapter runs the built-in task http.request.
	EnableHTTPAdapter bool
	// HTTPAllow are networks that http.request and pushes may reach although
	// they are private.
	HTTPAllow []netip.Prefix
	// Routes say which tasks are pushed to their workers: JSON, or the name of a
	// file of it.
	Routes string
	// TickMode is TickPrecise, TickMinute or TickOnDemand.
	TickMode  string
	LogLevel  slog.Level
	LogFormat string // LogText or LogJSON
	// OTLPEndpoint is the base URL of a collector of OpenTelemetry, "" for none.
	OTLPEndpoint string
	OTLPHeaders  Headers

	// What follows is for functions alone; see LoadFunction.

	// Stack names the installation.
	Stack string
	// DatabaseAuth is AuthPassword, AuthSecret, AuthIAM or AuthDSQL.
	DatabaseAuth string
	// DatabaseSecret is a secret of Secrets Manager, for AuthSecret.
	DatabaseSecret string
	// DatabaseCA is a file of certificates, "" for the usual authorities.
	DatabaseCA string
	// DatabaseAppUser is the user that migrate makes for the other functions, ""
	// for none; DatabaseAppARNs are the roles that may connect as it on DSQL.
	DatabaseAppUser, DatabaseAppARNs string
	// AdminToken is the first admin token, "" for none.
	AdminToken string
	// Auth is AuthTokens, AuthJWT or AuthPrincipal.
	Auth string
	// AuthClaim is the claim of a JWT that holds the role.
	AuthClaim string
	// AuthRoles gives roles to the values of that claim, or to principals by ARN.
	AuthRoles map[string]string
	// CallSecrets is a secret of Secrets Manager with those of http.request and
	// pushes, "" for variables.
	CallSecrets string
	// WakeGroup, WakeRole and WakeTarget are for TickOnDemand.
	WakeGroup, WakeRole, WakeTarget string
	// Region is AWS_REGION, which Lambda sets.
	Region string
}

// Source tells the text of a setting: from a flag by its name, or from the
// environment by the name of a variable. False: it is not set there.
type Source func(name string) (text string, set bool)

// Load makes Settings of a server of what flags and the environment say. Either may be nil.
// A variable that is set to nothing counts as not set. The error holds every
// fault, a line each.
func Load(flags, environment Source) (Settings, error) {
	var s Settings
	if faults := s.read(table, flags, environment); len(faults) > 0 {
		return Settings{}, errors.Join(faults...)
	}
	if err := s.Engine.Validate(); err != nil {
		return Settings{}, fmt.Errorf("settings: %w", err)
	}
	return s, nil
}

// read sets what a table lists and returns the faults.
func (s *Settings) read(table []Setting, flags, environment Source) (faults []error) {
	for _, setting := range table {
		text, from := setting.find(flags, environment)
		if err := setting.set(s, text); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", from, err))
		}
	}
	return faults
}

// find gives the text that counts and says where it stood.
func (s Setting) find(flags, environment Source) (text, from string) {
	if flags != nil {
		if text, set := flags(s.Name); set {
			return text, s.Flag()
		}
	}
	if environment != nil {
		if text, set := environment(s.Variable()); set && text != "" {
			return text, s.Variable()
		}
	}
	return s.Default, "the default of " + s.Flag()
}
