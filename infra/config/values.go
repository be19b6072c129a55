package config

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"perigee/engine"
	"perigee/engine/definition"
)

// The functions below read one kind of value each into a field of Settings.

func text(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		if text == "" {
			return fmt.Errorf("expected a text, got nothing")
		}
		*field(s) = text
		return nil
	}
}

// optional is a text that may be empty.
func optional(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		*field(s) = text
		return nil
	}
}

// address is host:port to listen on. Without a host it is every address of the
// machine.
func address(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		_, port, err := net.SplitHostPort(text)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return fmt.Errorf("expected host:port with a port from 0 to %d, such as 127.0.0.1:7474, got %q", math.MaxUint16, text)
		}
		*field(s) = text
		return nil
	}
}

// authRoles reads VALUE=ROLE pairs. An ARN holds no comma, but may hold =.
func authRoles(s *Settings, text string) error {
	roles := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		at := strings.LastIndexByte(pair, '=')
		if at < 1 || !slices.Contains(authorizedRoles, pair[at+1:]) {
			return fmt.Errorf("expected VALUE=ROLE with a role of %s, got %q", strings.Join(authorizedRoles, ", "), pair)
		}
		roles[pair[:at]] = pair[at+1:]
	}
	if len(roles) > 0 {
		s.AuthRoles = roles
	}
	return nil
}

// authorizedRoles are the roles that an authorizer may give.
var authorizedRoles = []string{engine.RoleAdmin, engine.RoleOperator, engine.RoleReader, engine.RoleWorker}

// duration is written as in definitions: 500ms, 30s, 1h30m, 7d, P1DT2H.
func duration(field func(*Settings) *time.Duration) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		ms, err := definition.ParseDuration(text)
		switch {
		case err != nil:
			return err
		case ms == 0:
			return fmt.Errorf("duration %q must be above 0", text)
		}
		*field(s) = time.Duration(ms) * time.Millisecond
		return nil
	}
}

// count is a whole number from 1.
func count(field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		n, err := strconv.ParseInt(text, 10, 16)
		if err != nil || n < 1 {
			return fmt.Errorf("expected a whole number from 1 to %d, got %q", math.MaxInt16, text)
		}
		*field(s) = int(n)
		return nil
	}
}

// limit is a count of which 0 means "none", which the engine's options write
// as a negative number.
func limit(field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("expected a whole number from 0 to %d, got %q", math.MaxInt32, text)
		}
		*field(s) = noneIfZero(n)
		return nil
	}
}

func noneIfZero(n int64) int {
	if n == 0 {
		return -1
	}
	return int(n)
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// maxSize is more than any payload may have.
const maxSize = 1 << 40

// size is a number of bytes such as 900000, 900KiB or 1MiB; 0: none.
func size(field func(*Settings) *int) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		for _, unit := range sizeUnits {
			digits, ok := strings.CutSuffix(text, unit.name)
			if !ok {
				continue
			}
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || n < 0 || n > maxSize/unit.bytes {
				break
			}
			*field(s) = noneIfZero(n * unit.bytes)
			return nil
		}
		return fmt.Errorf("expected a number of bytes such as 900000, 900KiB or 1MiB, got %q", text)
	}
}

func boolean(field func(*Settings) *bool) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		switch text {
		case "true", "1":
			*field(s) = true
		case "false", "0":
			*field(s) = false
		default:
			return fmt.Errorf("expected true or false, got %q", text)
		}
		return nil
	}
}

func choice(field func(*Settings) *string, words ...string) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		if !slices.Contains(words, text) {
			return fmt.Errorf("expected one of %s, got %q", strings.Join(words, ", "), text)
		}
		*field(s) = text
		return nil
	}
}

func logLevel(s *Settings, text string) error {
	if err := s.LogLevel.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("expected debug, info, warn or error, got %q", text)
	}
	return nil
}

// networks reads addresses and prefixes, separated by commas.
func networks(s *Settings, text string) error {
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			addr, addrErr := netip.ParseAddr(item)
			if addrErr != nil {
				return fmt.Errorf("expected networks such as 10.1.0.0/16,127.0.0.1/32, got %q", item)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		s.HTTPAllow = append(s.HTTPAllow, prefix.Masked())
	}
	return nil
}
