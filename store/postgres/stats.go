package postgres

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"perigee/store"
)

// counters count what goes over the wire. They are the driver's tracer.
type counters struct {
	roundTrips, statements, commits atomic.Int64
}

var (
	_ pgx.QueryTracer = (*counters)(nil)
	_ pgx.BatchTracer = (*counters)(nil)
)

// TraceQueryStart counts a statement that goes alone.
func (c *counters) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.roundTrips.Add(1)
	c.statements.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (c *counters) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts a batch and its statements.
func (c *counters) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	c.roundTrips.Add(1)
	c.statements.Add(int64(data.Batch.Len()))
	return ctx
}

// TraceBatchQuery does nothing: the batch was counted when it began.
func (c *counters) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (c *counters) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Stats counts what went over the wire. The one more round trip in which a
// connection prepares a statement at its first use (never in ModePooled), and
// the pings of idle connections are left out.
func (s *Store) Stats() store.Stats {
	return store.Stats{
		RoundTrips: s.stats.roundTrips.Load(), Statements: s.stats.statements.Load(), Commits: s.stats.commits.Load(),
	}
}
