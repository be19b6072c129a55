package simulation

import (
	"context"
	"errors"
	"fmt"

	"perigee/store"
)

// faultyStore is a process's view of the store: calls fail before they reach
// it, or after they took effect, and other processes work between a load and
// what follows it.
type faultyStore struct {
	store.Store
	world *World
}

// before decides whether a call fails without having any effect.
func (f *faultyStore) before() error {
	if f.world.faults && chance(f.world.rand, f.world.opts.FaultPercent) {
		f.world.count("fault: unavailable")
		return fmt.Errorf("simulated: %w", store.ErrUnavailable)
	}
	return nil
}

// after decides whether the answer of a call that took effect is lost.
func (f *faultyStore) after(err error) error {
	if err == nil && f.world.faults && chance(f.world.rand, f.world.opts.FaultPercent) {
		f.world.count("fault: outcome unknown")
		return fmt.Errorf("simulated: %w", store.ErrUnknownOutcome)
	}
	return err
}

func (f *faultyStore) Load(ctx context.Context, r store.LoadRequest) (store.Loaded, error) {
	if err := f.before(); err != nil {
		return store.Loaded{}, err
	}
	l, err := f.Store.Load(ctx, r)
	f.world.interleave()
	return l, err
}

func (f *faultyStore) Commit(ctx context.Context, c store.Commit) error {
	f.world.interleave()
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.lost(f.Store.Commit(ctx, c)))
}

func (f *faultyStore) lost(err error) error {
	var lost *store.LostError
	var child *store.ChildExistsError
	if errors.As(err, &lost) {
		f.world.count("race: lost")
	}
	if errors.As(err, &child) {
		f.world.count("race: child exists")
	}
	return err
}

func (f *faultyStore) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.Store.WithHeadLocked(ctx, r, decide))
}

func (f *faultyStore) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.Store.TryDrain(ctx, r, decide))
}

func (f *faultyStore) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	if err := f.before(); err != nil {
		return store.Claimed{}, err
	}
	c, err := f.Store.Claim(ctx, r)
	return c, f.after(err)
}

func (f *faultyStore) Report(ctx context.Context, r store.Report) (bool, error) {
	if err := f.before(); err != nil {
		return false, err
	}
	ok, err := f.Store.Report(ctx, r)
	return ok, f.after(err)
}

func (f *faultyStore) Sight(ctx context.Context, s []store.Sighting) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.Store.Sight(ctx, s))
}

func (f *faultyStore) Due(ctx context.Context, r store.DueRequest) (store.Due, error) {
	if err := f.before(); err != nil {
		return store.Due{}, err
	}
	return f.Store.Due(ctx, r)
}

func (f *faultyStore) PutSession(ctx context.Context, s store.Session) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.Store.PutSession(ctx, s))
}

func (f *faultyStore) TouchSession(ctx context.Context, hash string, nowMS, minAgeMS int64) (store.Touched, error) {
	if err := f.before(); err != nil {
		return store.Touched{}, err
	}
	t, err := f.Store.TouchSession(ctx, hash, nowMS, minAgeMS)
	return t, f.after(err)
}

func (f *faultyStore) DeleteSession(ctx context.Context, hash string) (store.Touched, error) {
	if err := f.before(); err != nil {
		return store.Touched{}, err
	}
	t, err := f.Store.DeleteSession(ctx, hash)
	return t, f.after(err)
}

func (f *faultyStore) DeleteMessages(ctx context.Context, ids []string) error {
	if err := f.before(); err != nil {
		return err
	}
	return f.after(f.Store.DeleteMessages(ctx, ids))
}
