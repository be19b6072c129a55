package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"perigee/store"
)

// Mode says how statements are sent.
type Mode string

// The modes. Behind a proxy that pools transactions, statements prepared on one
// server connection would be looked for on another: there they go unnamed.
const (
	ModeDirect Mode = "direct"
	ModePooled Mode = "pooled"
)

// Options say which database to open and how.
type Options struct {
	// URL such as postgres://user:password@host:port/database?sslmode=verify-full.
	URL string
	// Mode is how statements are sent. "": ModeDirect.
	Mode Mode
	// MaxConns bounds the connections. 0: 4.
	MaxConns int
	// NoLocks is for databases without row locks (Aurora DSQL), whose
	// transactions are of isolation level repeatable read and may fail with
	// 40001 at the end. On Postgres the URL must ask for that level
	// (?default_transaction_isolation=repeatable read).
	NoLocks bool
	// DSQL says that the database is Aurora DSQL: NoLocks, and a schema in its
	// own DDL (migrations_dsql), which Postgres cannot run.
	DSQL bool
	// BeforeConnect may change what a new connection is made with, such as a
	// password that is valid for minutes. nil: none.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
}

func (o *Options) validate() error {
	switch {
	case o.URL == "":
		return errors.New("postgres options: URL is empty; want postgres://user:password@host:port/database")
	case o.Mode != "" && o.Mode != ModeDirect && o.Mode != ModePooled:
		return fmt.Errorf("postgres options: Mode is %q; want %q or %q", o.Mode, ModeDirect, ModePooled)
	case o.MaxConns < 0:
		return fmt.Errorf("postgres options: MaxConns is %d; it must not be negative", o.MaxConns)
	}
	if o.MaxConns == 0 {
		o.MaxConns = 4
	}
	o.NoLocks = o.NoLocks || o.DSQL
	return nil
}

// pingTimeout bounds the check of a connection that was idle for a second: it
// may have died while the process was frozen.
const pingTimeout = 2 * time.Second

// Store is a Postgres database; see package store for its methods.
type Store struct {
	pool    *pgxpool.Pool
	config  *pgxpool.Config
	noLocks bool
	dsql    bool
	stats   *counters
	groups  groups
	// disturb changes scripts before they are sent; nil but in tests.
	disturb func(*script)
}

var _ store.Store = (*Store)(nil)

// Open makes a store. It connects when a connection is first needed: Ping
// tells whether the server can be reached.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, urlError(o.URL, err)
	}
	s := &Store{config: config, noLocks: o.NoLocks, dsql: o.DSQL, stats: &counters{}}
	s.groups = groups{store: s, off: o.NoLocks, atOnce: groupsAtOnce, alone: groupAlone, underWay: map[*group]bool{}}
	config.MaxConns, config.PingTimeout = int32(o.MaxConns), pingTimeout
	config.MinConns, config.MinIdleConns = 0, 0
	config.BeforeConnect = o.BeforeConnect
	config.ConnConfig.Tracer = s.stats
	if o.Mode == ModePooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		config.ConnConfig.StatementCacheCapacity, config.ConnConfig.DescriptionCacheCapacity = 0, 0
	}
	if o.NoLocks {
		config.AfterConnect = checkIsolation
	}
	if o.Mode != ModePooled && !o.NoLocks {
		planByIndex(config.ConnConfig.RuntimeParams)
	}
	s.pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, wrap("open postgres", err)
	}
	return s, nil
}

// planByIndex makes the server plan each prepared statement once, without
// reading whole tables: every statement that runs often has its one index. Else
// it would keep a plan that was right while a table was empty when there are a
// million rows, or find its general plan dearer than one for the arguments at
// hand and plan anew at each call, which takes longer than the call itself. A
// plan that must read a table looks dear to the compiler, which would spend more
// on it than it takes. Behind a proxy statements are planned anew anyway.
func planByIndex(params map[string]string) {
	for name, value := range map[string]string{
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off",
	} {
		if _, given := params[name]; !given {
			params[name] = value
		}
	}
}

const isolationSQL = `SHOW transaction_isolation`

// checkIsolation refuses a connection on which the claim without locks would
// be wrong.
func checkIsolation(ctx context.Context, conn *pgx.Conn) error {
	var level string
	if err := conn.QueryRow(ctx, isolationSQL).Scan(&level); err != nil {
		return err
	}
	if level != "repeatable read" && level != "serializable" {
		return fmt.Errorf("NoLocks needs transactions of isolation level repeatable read, and this server's are %s: "+
			"add default_transaction_isolation=repeatable%%20read to the URL, or open without NoLocks", level)
	}
	return nil
}

// Close waits for the calls under way and closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// nowSQL is the moment to work with: the caller's, or the database's clock.
// Not the transaction's start: a lock may have been waited for since.
const nowSQL = `CASE WHEN $1::bigint <> 0 THEN $1::bigint ELSE floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint END`

const momentSQL = `SELECT ` + nowSQL

const pingSQL = `SELECT 1`

// Ping makes a round trip.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(sc *script) { sc.add(pingSQL, nil) })
}
