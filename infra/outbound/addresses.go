package outbound

import (
	"fmt"
	"net/netip"
)

// special are networks that no public service has an address in, with the
// words by which a refusal names them. Metadata comes first, so that it is
// called by its name.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata},
	{netip.MustParsePrefix("169.254.170.0/24"), metadata}, // credentials of containers
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},

	{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), embedding},
	{netip.MustParsePrefix("::ffff:0:0/96"), embedding},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), embedding},
	{netip.MustParsePrefix("64:ff9b::/96"), embedding},
	{netip.MustParsePrefix("64:ff9b:1::/48"), embedding},
	{netip.MustParsePrefix("2001::/32"), embedding},
	{netip.MustParsePrefix("2002::/16"), embedding},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

const (
	metadata  = "cloud metadata"
	embedding = "an IPv4 address inside of IPv6"
)

// public is where every public IPv6 address is. What lies outside and has no
// name above is not assigned to anybody.
var public = netip.MustParsePrefix("2000::/3")

// refusal says why an address is not connected to, "" where it may be. Only
// the networks in allow are excepted, and metadata only where it is allowed by
// its full address: a whole private network that is opened does not open that.
func refusal(addr netip.Addr, allow []netip.Prefix) string {
	if !addr.IsValid() {
		return "not an address"
	}
	if addr.Zone() != "" {
		return "link-local"
	}
	what := kindOf(addr)
	if what == "" || allowed(addr, what, allow) {
		if inner, ok := embedded(addr); ok && what != "" {
			return refusal(inner, allow)
		}
		return ""
	}
	return what
}

func kindOf(addr netip.Addr) string {
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.what
		}
	}
	if addr.Is6() && !public.Contains(addr) {
		return "reserved"
	}
	return ""
}

func allowed(addr netip.Addr, what string, allow []netip.Prefix) bool {
	for _, p := range allow {
		if p.Contains(addr) && (what != metadata || p.IsSingleIP()) {
			return true
		}
	}
	return false
}

// embedded is the IPv4 address that an IPv6 address stands for, where it stands
// for one: a translator on the way would connect there.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch kindOf(addr) {
	case embedding:
		switch {
		case b[0] == 0x20 && b[1] == 0x02: // 6to4
			return netip.AddrFrom4([4]byte(b[2:6])), true
		case b[0] == 0x20 && b[1] == 0x01: // Teredo hides the client's address
			return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
		}
		return netip.AddrFrom4([4]byte(b[12:16])), true
	}
	return netip.Addr{}, false
}

// RefusedError says that a call would have gone where calls must not go.
type RefusedError struct {
	Host string // as it was asked for
	Addr netip.Addr
	What string // "loopback", "private", "cloud metadata" …
}

// Error names the address and what would allow it.
func (e *RefusedError) Error() string {
	where := e.Addr.String()
	if e.Host != "" && e.Host != where {
		where = fmt.Sprintf("%s (%s)", e.Host, where)
	}
	return fmt.Sprintf("%s is not called: its address is %s; the setting http-allow names networks that may be called all the same", where, e.What)
}
