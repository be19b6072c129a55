package database

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"perigee/infra/cloud"
	"perigee/infra/config"
	"perigee/store/postgres"
)

// Open makes the store that settings name. It connects when a call first needs
// the database.
func Open(ctx context.Context, s config.Settings, c *cloud.Cloud) (*postgres.Store, error) {
	o := postgres.Options{URL: s.Database, Mode: postgres.ModeDirect, MaxConns: s.DatabaseConnections}
	if s.DatabaseMode == config.DatabasePooled {
		o.Mode = postgres.ModePooled
	}
	var prepare []preparer
	if s.DatabaseCA != "" {
		roots, err := readRoots(s.DatabaseCA)
		if err != nil {
			return nil, err
		}
		prepare = append(prepare, roots)
	}
	switch s.DatabaseAuth {
	case config.AuthSecret:
		prepare = append(prepare, &secret{id: s.DatabaseSecret, read: c.Secret})
	case config.AuthIAM:
		prepare = append(prepare, &tokens{sign: c.DatabaseToken})
	case config.AuthDSQL:
		prepare = append(prepare, &tokens{sign: c.DSQLToken})
		o.NoLocks = true
	}
	if len(prepare) > 0 {
		o.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
			for _, p := range prepare {
				if err := p.prepare(ctx, c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return postgres.Open(ctx, o)
}

// preparer changes what a new connection is made with.
type preparer interface {
	prepare(context.Context, *pgx.ConnConfig) error
}

// roots are the authorities that certificates are checked against.
type roots struct{ pool *x509.CertPool }

func readRoots(path string) (roots, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return roots{}, fmt.Errorf("PERIGEE_DATABASE_CA: %w", err)
	}
	r := roots{x509.NewCertPool()}
	if !r.pool.AppendCertsFromPEM(pem) {
		return roots{}, fmt.Errorf("PERIGEE_DATABASE_CA: %s holds no certificate in PEM", path)
	}
	return r, nil
}

func (r roots) prepare(_ context.Context, c *pgx.ConnConfig) error {
	if c.TLSConfig != nil {
		c.TLSConfig = c.TLSConfig.Clone()
		c.TLSConfig.RootCAs = r.pool
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig != nil {
			f.TLSConfig = f.TLSConfig.Clone()
			f.TLSConfig.RootCAs = r.pool
		}
	}
	return nil
}
