package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialTime bounds one attempt to connect to one address, so that a dead one
// leaves time for the next.
const dialTime = 5 * time.Second

// dialer connects to addresses that may be called. It resolves names itself and
// connects to the very addresses that it looked at: a name that resolves
// differently a moment later gains nothing.
type dialer struct {
	resolver Resolver
	allow    []netip.Prefix
}

// DialContext connects to host:port. A *RefusedError says that none of the
// host's addresses may be called.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var refused *RefusedError
	var failures []error
	for _, addr := range addrs {
		if what := refusal(addr, d.allow); what != "" {
			if refused == nil {
				refused = &RefusedError{Host: host, Addr: addr, What: what}
			}
			continue
		}
		conn, err := d.connect(ctx, network, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	switch {
	case len(failures) > 0:
		return nil, failures[0]
	case refused != nil:
		return nil, refused
	}
	return nil, fmt.Errorf("%s has no address", host)
}

// resolve gives the addresses of a host. An address that is written out stays
// as it is; what a name resolves to is taken as the IPv4 address that it is,
// since resolvers hand those out in either form.
func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs, nil
}

// connect looks once more, at the address that the system is about to connect
// to, so that nothing between here and there changes it.
func (d *dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	dial := net.Dialer{
		Timeout: dialTime,
		Control: func(_, actual string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(actual)
			if err != nil {
				return fmt.Errorf("the address %q cannot be read", actual)
			}
			if what := refusal(at.Addr(), d.allow); what != "" {
				return &RefusedError{Addr: at.Addr(), What: what}
			}
			return nil
		},
	}
	conn, err := dial.DialContext(ctx, network, address)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return nil, refused
	}
	return conn, err
}
