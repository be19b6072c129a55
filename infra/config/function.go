package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// functionDefaults are what a function has otherwise than a server: one call at
// a time needs one connection, and its log is read by machines.
var functionDefaults = map[string]string{
	"PERIGEE_DATABASE":             "",
	"PERIGEE_DATABASE_CONNECTIONS": "1",
	"PERIGEE_LOG_FORMAT":           LogJSON,
}

// dsqlBytes is what one value may have on Aurora DSQL, whose columns hold 1 MiB:
// there is something around each payload. A join is one value, too.
const dsqlBytes = 900 << 10

// dsqlDefaults are what a function has otherwise on Aurora DSQL.
var dsqlDefaults = map[string]string{
	"PERIGEE_MAX_PAYLOAD_BYTES": "900KiB",
	"PERIGEE_MAX_JOIN_BYTES":    "900KiB",
}

// LoadFunction makes Settings of a function on AWS of its environment. The
// error holds every fault, a line each.
func LoadFunction(environment Source) (Settings, error) {
	var s Settings
	faults := s.read(slices.Concat(table, functionTable), nil, func(name string) (string, bool) {
		if text, set := environment(name); set && text != "" {
			return text, true
		}
		if auth, _ := environment("PERIGEE_DATABASE_AUTH"); auth == AuthDSQL && dsqlDefaults[name] != "" {
			return dsqlDefaults[name], true
		}
		text := functionDefaults[name]
		return text, text != ""
	})
	if text, set := environment("PERIGEE_DATABASE"); !set || text == "" {
		s.Database = ""
	}
	s.Region, _ = environment("AWS_REGION")
	faults = append(faults, s.checkFunction()...)
	if err := s.Engine.Validate(); err != nil && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("settings: %w", err))
	}
	if len(faults) > 0 {
		return Settings{}, errors.Join(faults...)
	}
	return s, nil
}

// checkFunction names what cannot work together.
func (s *Settings) checkFunction() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := s.checkDatabase(); err != nil {
		faults = append(faults, err)
	}
	if (s.DatabaseAuth == AuthSecret) != (s.DatabaseSecret != "") {
		fault("PERIGEE_DATABASE_AUTH is %s and PERIGEE_DATABASE_SECRET is %q: the one needs the other", s.DatabaseAuth, s.DatabaseSecret)
	}
	if s.Region == "" && (s.DatabaseAuth != AuthPassword || s.TickMode == TickOnDemand || s.CallSecrets != "") {
		fault("AWS_REGION: expected a region such as us-east-1, got nothing; Lambda sets it")
	}
	if s.DatabaseAuth == AuthDSQL {
		faults = append(faults, s.checkSizes()...)
	}
	if s.DatabaseAppUser != "" && !plainName(s.DatabaseAppUser) {
		fault("PERIGEE_DATABASE_APP_USER: expected a name of a-z, 0-9 and _, got %q", s.DatabaseAppUser)
	}
	if s.Auth == AuthPrincipal && len(s.AuthRoles) == 0 {
		fault("PERIGEE_AUTH_ROLES: with PERIGEE_AUTH iam it gives roles to principals, as ARN=ROLE,ARN=ROLE; got nothing, so that nobody may call")
	}
	if s.TickMode == TickOnDemand {
		if s.WakeGroup == "" {
			fault("PERIGEE_WAKE_GROUP: tick mode on-demand needs a schedule group, got nothing")
		}
		if !strings.HasPrefix(s.WakeTarget, "arn:") {
			fault("PERIGEE_WAKE_TARGET: tick mode on-demand needs the ARN of the tick function, got %q", s.WakeTarget)
		}
		if !strings.HasPrefix(s.WakeRole, "arn:") {
			fault("PERIGEE_WAKE_ROLE: tick mode on-demand needs the ARN of a role for EventBridge Scheduler, got %q", s.WakeRole)
		}
	}
	return faults
}

// checkSizes refuses payloads that Aurora DSQL does not store: a result of such a
// size would be taken and could never be written.
func (s *Settings) checkSizes() (faults []error) {
	for _, limit := range []struct {
		variable string
		bytes    int
	}{{"PERIGEE_MAX_PAYLOAD_BYTES", s.Engine.MaxPayloadBytes}, {"PERIGEE_MAX_JOIN_BYTES", s.Engine.MaxJoinBytes}} {
		got := fmt.Sprintf("%d bytes", limit.bytes)
		if limit.bytes < 0 {
			got = "no limit"
		}
		if limit.bytes < 0 || limit.bytes > dsqlBytes {
			faults = append(faults, fmt.Errorf("%s: expected at most %s, which is what Aurora DSQL stores in one value and the default there, got %s",
				limit.variable, dsqlDefaults[limit.variable], got))
		}
	}
	return faults
}

// checkDatabase requires Postgres whose certificate is checked, and asks for
// that where the URL leaves it open; on this machine nobody is between. The URL
// is not shown: it may hold a password.
func (s *Settings) checkDatabase() error {
	const want = "PERIGEE_DATABASE: expected postgres://user@host:5432/database"
	if s.Database == "" {
		return errors.New(want + ", got nothing")
	}
	u, err := url.Parse(s.Database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Hostname() == "" {
		return errors.New(want + ", got something else; what is special in a password is escaped by %")
	}
	q := u.Query()
	mode, local := q.Get("sslmode"), isLocal(u)
	if mode == "" && !local {
		mode = "verify-full"
		q.Set("sslmode", mode)
		u.RawQuery = q.Encode()
		s.Database = u.String()
	}
	if mode != "verify-full" && !local {
		return fmt.Errorf("PERIGEE_DATABASE: sslmode is %s, by which somebody between could be the database: use verify-full, or leave it out; "+
			"PERIGEE_DATABASE_CA names the authorities of a certificate of your own", mode)
	}
	if tokens := s.DatabaseAuth == AuthIAM || s.DatabaseAuth == AuthDSQL; tokens && u.User.Username() == "" {
		return fmt.Errorf("PERIGEE_DATABASE: PERIGEE_DATABASE_AUTH %s needs a user in the URL: postgres://user@host:5432/database", s.DatabaseAuth)
	}
	return nil
}

// isLocal reports whether a URL leads to this machine: over loopback or by a
// socket in a folder. A host in its query goes before the URL's own.
func isLocal(u *url.URL) bool {
	host := u.Hostname()
	if other := u.Query().Get("host"); other != "" {
		host = other
	}
	return isLoopback(host) || strings.HasPrefix(host, "/")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// plainName reports whether a name needs no quotes in SQL.
func plainName(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) < 64
}
