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

// LoadFunction makes Settings of a function on AWS of its environment. The
// error holds every fault, a line each.
func LoadFunction(environment Source) (Settings, error) {
	var s Settings
	faults := s.read(slices.Concat(table, functionTable), nil, func(name string) (string, bool) {
		if text, set := environment(name); set && text != "" {
			return text, true
		}
		text, set := functionDefaults[name]
		return text, set && text != ""
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
	if s.DatabaseSecret != "" && s.DatabaseIAM {
		fault("PERIGEE_DATABASE_SECRET and PERIGEE_DATABASE_IAM are both set: the password comes from one of them")
	}
	if s.Region == "" && (s.DatabaseSecret != "" || s.DatabaseIAM || s.AdminTokenSecret != "" || s.TickMode == TickOnDemand) {
		fault("AWS_REGION: expected a region such as us-east-1, got nothing; Lambda sets it")
	}
	if s.TickMode == TickOnDemand {
		if !strings.HasPrefix(s.WakeupTarget, "arn:") {
			fault("PERIGEE_WAKEUP_TARGET: tick mode on-demand needs the ARN of the tick function, got %q", s.WakeupTarget)
		}
		if !strings.HasPrefix(s.WakeupRole, "arn:") {
			fault("PERIGEE_WAKEUP_ROLE: tick mode on-demand needs the ARN of a role for EventBridge Scheduler, got %q", s.WakeupRole)
		}
		if group, name, ok := strings.Cut(s.WakeupSchedule, "/"); !ok || group == "" || name == "" {
			fault("PERIGEE_WAKEUP_SCHEDULE: expected group/name, got %q", s.WakeupSchedule)
		}
	}
	return faults
}

// checkDatabase requires Postgres whose certificate is checked, and asks for
// that where the URL leaves it open. The URL is not shown: it may hold a password.
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
	mode, loopback := q.Get("sslmode"), isLoopback(u.Hostname())
	if mode == "" && !loopback {
		mode = "verify-full"
		q.Set("sslmode", mode)
		u.RawQuery = q.Encode()
		s.Database = u.String()
	}
	if s.DatabaseIAM && mode != "verify-full" && !loopback {
		return fmt.Errorf("PERIGEE_DATABASE: sslmode is %s, and PERIGEE_DATABASE_IAM sends a token that opens the database: use verify-full", mode)
	}
	if s.DatabaseIAM && u.User.Username() == "" {
		return errors.New("PERIGEE_DATABASE: PERIGEE_DATABASE_IAM needs a user in the URL: postgres://user@host:5432/database")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
