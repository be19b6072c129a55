package outbound

import (
	"net/netip"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestRefusal_OfWhatIsNotPublic(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0":         "unspecified",
		"0.1.2.3":         "unspecified",
		"10.0.0.1":        "private",
		"100.64.0.1":      "carrier-grade NAT",
		"100.127.255.255": "carrier-grade NAT",
		"100.128.0.1":     "",
		"127.0.0.1":       "loopback",
		"127.255.255.254": "loopback",
		"169.254.0.1":     "link-local",
		"169.254.169.254": "cloud metadata",
		"169.254.170.2":   "cloud metadata",
		"168.63.129.16":   "cloud metadata",
		"100.100.100.200": "cloud metadata",
		"172.15.255.255":  "",
		"172.16.0.1":      "private",
		"172.31.255.255":  "private",
		"172.32.0.1":      "",
		"192.0.0.1":       "reserved",
		"192.0.2.1":       "documentation",
		"192.88.99.1":     "6to4 relay",
		"192.168.1.1":     "private",
		"198.18.0.1":      "benchmarking",
		"224.0.0.1":       "multicast",
		"255.255.255.255": "reserved",
		"8.8.8.8":         "",

		"::":                       "unspecified",
		"::1":                      "loopback",
		"::7f00:1":                 "an IPv4 address inside of IPv6",
		"::ffff:127.0.0.1":         "an IPv4 address inside of IPv6",
		"::ffff:8.8.8.8":           "an IPv4 address inside of IPv6",
		"::ffff:0:127.0.0.1":       "an IPv4 address inside of IPv6",
		"64:ff9b::a9fe:a9fe":       "an IPv4 address inside of IPv6",
		"64:ff9b:1::a00:1":         "an IPv4 address inside of IPv6",
		"2002:7f00:1::":            "an IPv4 address inside of IPv6",
		"2001:0:1:2:3:4:80ff:fffe": "an IPv4 address inside of IPv6",
		"2001:1::1":                "reserved",
		"2001:db8::1":              "documentation",
		"3fff::1":                  "documentation",
		"fc00::1":                  "private",
		"fd00:ec2::254":            "cloud metadata",
		"fd20:ce::254":             "cloud metadata",
		"fe80::1":                  "link-local",
		"fe80::1%eth0":             "link-local",
		"fec0::1":                  "site-local",
		"ff02::1":                  "multicast",
		"100::1":                   "reserved",
		"5f00::1":                  "reserved",
		"4000::1":                  "reserved",
		"2606:4700:4700::1111":     "",
		"2a00:1450:4001:80f::200e": "",
		"2001:4860:4860::8888":     "",
	} {
		if got := refusal(netip.MustParseAddr(address), nil); got != want {
			t.Errorf("%s is refused as %q, want %q", address, got, want)
		}
	}
	if refusal(netip.Addr{}, nil) == "" {
		t.Error("no address at all is not refused")
	}
}

func TestRefusal_ExceptsWhatIsAllowed(t *testing.T) {
	for _, tt := range []struct {
		address string
		allow   []netip.Prefix
		want    string
	}{
		{"10.1.2.3", prefixes("10.1.0.0/16"), ""},
		{"10.2.2.3", prefixes("10.1.0.0/16"), "private"},
		{"::1", prefixes("127.0.0.0/8"), "loopback"},
		{"fc00::1", prefixes("fc00::/7"), ""},
		// A network that is opened does not open the metadata inside of it.
		{"169.254.169.254", prefixes("169.254.0.0/16"), "cloud metadata"},
		{"169.254.169.254", prefixes("0.0.0.0/0"), "cloud metadata"},
		{"fd00:ec2::254", prefixes("fc00::/7"), "cloud metadata"},
		{"169.254.169.254", prefixes("169.254.169.254/32"), ""},
		// A translator is allowed by its own prefix, for what could be called anyway.
		{"64:ff9b::808:808", prefixes("64:ff9b::/96"), ""},
		{"64:ff9b::a00:1", prefixes("64:ff9b::/96"), "private"},
		{"64:ff9b::a9fe:a9fe", prefixes("64:ff9b::/96"), "cloud metadata"},
		{"64:ff9b::a00:1", prefixes("64:ff9b::/96", "10.0.0.0/8"), ""},
		{"64:ff9b::a00:1", prefixes("10.0.0.0/8"), "an IPv4 address inside of IPv6"},
		{"::ffff:127.0.0.1", prefixes("127.0.0.0/8"), "an IPv4 address inside of IPv6"},
		{"2002:a00:1::", prefixes("2002::/16"), "private"},
	} {
		if got := refusal(netip.MustParseAddr(tt.address), tt.allow); got != tt.want {
			t.Errorf("%s, with %v allowed, is refused as %q, want %q", tt.address, tt.allow, got, tt.want)
		}
	}
}
