package database

import (
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"

	"perigee/infra/cloud"
	"perigee/infra/config"
	"perigee/store/postgres"
)

// Open makes the store that settings name. It connects when a call first needs
// the database.
func Open(ctx context.Context, s config.Settings, c *cloud.Cloud) (*postgres.Store, error) {
	o := postgres.Options{
		URL: s.Database, Mode: postgres.ModeDirect, MaxConns: s.DatabaseConnections, DSQL: s.DatabaseAuth == config.AuthDSQL,
	}
	if s.DatabaseMode == config.DatabasePooled {
		o.Mode = postgres.ModePooled
	}
	before, err := beforeConnect(s, c)
	if err != nil {
		return nil, err
	}
	o.BeforeConnect = before
	return postgres.Open(ctx, o)
}

// beforeConnect is what settings ask to be done before each connection; nil:
// the URL says it all.
func beforeConnect(s config.Settings, c *cloud.Cloud) (func(context.Context, *pgx.ConnConfig) error, error) {
	var prepare []preparer
	switch u, err := url.Parse(s.Database); {
	case err != nil:
		return nil, errors.New("PERIGEE_DATABASE: it is no URL")
	case s.DatabaseCA != "":
		roots, err := rootsOfFile(s.DatabaseCA)
		if err != nil {
			return nil, err
		}
		prepare = append(prepare, roots)
	case onRDS(u.Hostname()):
		prepare = append(prepare, rootsOfRegion(s.Region))
	}
	switch s.DatabaseAuth {
	case config.AuthSecret:
		prepare = append(prepare, &secret{id: s.DatabaseSecret, read: c.Secret})
	case config.AuthIAM:
		prepare = append(prepare, &tokens{sign: c.DatabaseToken})
	case config.AuthDSQL:
		prepare = append(prepare, &tokens{sign: c.DSQLToken})
	}
	if len(prepare) == 0 {
		return nil, nil
	}
	return func(ctx context.Context, c *pgx.ConnConfig) error {
		for _, p := range prepare {
			if err := p.prepare(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// preparer changes what a new connection is made with.
type preparer interface {
	prepare(context.Context, *pgx.ConnConfig) error
}
