package instance

import (
	"context"
	"errors"
	"strings"

	"perigee/engine"
	"perigee/infra/database"
)

// Migrated is what the migrate function answers.
type Migrated struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Token bool  `json:"admin_token_stored"` // the first admin token was, in this call
}

// adminToken is the name of the first admin token.
const adminToken = "admin"

// Migrate brings the schema to this release and stores the token of the
// setting admin-token, if there is one. Calling it again changes nothing,
// but for a token that changed.
func (i *Instance) Migrate(ctx context.Context) (m Migrated, err error) {
	defer func() { err = i.Failed(ctx, err) }()
	// A password that was rotated is noticed here, where trying again is cheap.
	if err := i.Store.Ping(ctx); err != nil {
		return m, err
	}
	if m.From, m.To, err = i.Store.Migrate(ctx); err != nil {
		return m, err
	}
	i.Log.InfoContext(ctx, "the schema is up to date", "from", m.From, "to", m.To)
	if i.Settings.DatabaseAppUser != "" {
		if err := database.MakeUser(ctx, i.Settings, i.cloud); err != nil {
			return m, err
		}
	}
	if i.Settings.AdminToken == "" {
		return m, nil
	}
	m.Token, err = i.Engine.AdoptToken(ctx, adminToken, strings.TrimSpace(i.Settings.AdminToken), engine.Identity{Role: engine.RoleAdmin})
	return m, err
}

// Failed logs why a call that nobody answers by HTTP failed, and gives the
// error on, so that Lambda counts it.
func (i *Instance) Failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	attrs := []any{"error", err}
	var e *engine.Error
	if errors.As(err, &e) && e.Cause != nil {
		attrs = append(attrs, "cause", e.Cause)
	}
	i.Log.ErrorContext(ctx, "the call failed", attrs...)
	return err
}
