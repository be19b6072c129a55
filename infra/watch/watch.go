package watch

import (
	"context"

	"perigee/store"
)

// Watcher is told what a store did. Its methods are called by many goroutines
// at once, and are quick.
type Watcher interface {
	// Committed is told of each decision that was written.
	Committed(store.Commit)
	// Claimed is told of tasks that were handed out.
	Claimed(store.Claimed)
	// Looked is told what a tick found due.
	Looked(store.Due)
}

// Store is st as watchers see it.
func Store(st store.Store, watchers ...Watcher) store.Store { return &watched{st, watchers} }

type watched struct {
	store.Store
	watchers []Watcher
}

func (w *watched) committed(c *store.Commit) {
	for _, watcher := range w.watchers {
		watcher.Committed(*c)
	}
}

func (w *watched) Commit(ctx context.Context, c store.Commit) error {
	err := w.Store.Commit(ctx, c)
	if err == nil {
		w.committed(&c)
	}
	return err
}

func (w *watched) WithHeadLocked(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	return w.decided(decide, func(decide func(store.Loaded) (*store.Commit, error)) error {
		return w.Store.WithHeadLocked(ctx, r, decide)
	})
}

func (w *watched) TryDrain(ctx context.Context, r store.LoadRequest, decide func(store.Loaded) (*store.Commit, error)) error {
	return w.decided(decide, func(decide func(store.Loaded) (*store.Commit, error)) error {
		return w.Store.TryDrain(ctx, r, decide)
	})
}

// decided keeps the last commit that was decided on: transactions may be run
// anew.
func (w *watched) decided(decide func(store.Loaded) (*store.Commit, error), run func(func(store.Loaded) (*store.Commit, error)) error) error {
	var last *store.Commit
	err := run(func(l store.Loaded) (c *store.Commit, err error) {
		last, err = decide(l)
		return last, err
	})
	if err == nil && last != nil {
		w.committed(last)
	}
	return err
}

func (w *watched) Claim(ctx context.Context, r store.ClaimRequest) (store.Claimed, error) {
	c, err := w.Store.Claim(ctx, r)
	if err == nil && len(c.Tasks) > 0 && !c.Repeated {
		for _, watcher := range w.watchers {
			watcher.Claimed(c)
		}
	}
	return c, err
}

func (w *watched) Due(ctx context.Context, r store.DueRequest) (store.Due, error) {
	d, err := w.Store.Due(ctx, r)
	if err == nil {
		for _, watcher := range w.watchers {
			watcher.Looked(d)
		}
	}
	return d, err
}
