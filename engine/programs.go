package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/engine/exactjson"
	"perigee/store"
)

// program loads a definition, with those of its children, by hash.
func (e *Engine) program(ctx context.Context, hash string) (decide.Program, error) {
	if p, ok := e.programs.byHash(hash); ok {
		return p, nil
	}
	d, row, err := e.loadDefinition(ctx, hash)
	if err != nil {
		return decide.Program{}, err
	}
	p := decide.Program{Definition: d, Limits: e.limits}
	for name, childHash := range row.Children {
		child, _, err := e.loadDefinition(ctx, childHash)
		if err != nil {
			return decide.Program{}, err
		}
		if p.Children == nil {
			p.Children = map[string]*definition.Definition{}
		}
		p.Children[name] = child
	}
	e.programs.keep(hash, p)
	return p, nil
}

func (e *Engine) loadDefinition(ctx context.Context, hash string) (*definition.Definition, store.Definition, error) {
	row, err := e.store.Definition(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return nil, row, &decisionError{fmt.Errorf("definition %s is not in the database", hash)}
	}
	if err != nil {
		return nil, row, fmt.Errorf("load definition %s: %w", hash, err)
	}
	d, err := definition.Load(exactjson.Value(row.Canonical))
	if err != nil {
		return nil, row, &decisionError{fmt.Errorf("definition %s: %w", hash, err)}
	}
	return d, row, nil
}

// programCache keeps definitions by hash (they never change) and, for a
// moment, which versions there are.
type programCache struct {
	mu       sync.Mutex
	programs map[string]decide.Program
	lists    map[string]versionList
}

type versionList struct {
	atMS int64
	rows []store.Definition
}

// maxPrograms bounds the definitions in memory; past it the cache starts anew.
const maxPrograms = 1024

func newProgramCache() *programCache {
	return &programCache{programs: map[string]decide.Program{}, lists: map[string]versionList{}}
}

func (c *programCache) byHash(hash string) (decide.Program, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.programs[hash]
	return p, ok
}

func (c *programCache) keep(hash string, p decide.Program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[hash] = p
}

func (c *programCache) versions(name string, sinceMS int64) ([]store.Definition, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.lists[name]
	return l.rows, ok && l.atMS >= sinceMS
}

func (c *programCache) keepVersions(name string, nowMS int64, rows []store.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lists) >= maxPrograms {
		clear(c.lists)
	}
	c.lists[name] = versionList{nowMS, rows}
}

func (c *programCache) forgetVersions(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lists, name)
}
