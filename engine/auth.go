package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"perigee/engine/definition"
	"perigee/store"
)

// Roles of API tokens.
const (
	RoleAdmin    = "admin"
	RoleOperator = "operator" // start, signal, cancel, read
	RoleReader   = "reader"
	RoleWorker   = "worker" // the worker protocol, within its ids and tasks
)

// tokenPrefix makes a token recognisable to those who search for leaked ones.
const tokenPrefix = "perigee_"

// CreateToken makes an API token. Its text is given once and never stored.
func (e *Engine) CreateToken(ctx context.Context, name string, id Identity) (token string, err error) {
	if name == "" || len(name) > maxNameBytes {
		return "", errorf(InvalidRequest, "a token's name has 1 to %d bytes; this one has %d", maxNameBytes, len(name))
	}
	if !slices.Contains([]string{RoleAdmin, RoleOperator, RoleReader, RoleWorker}, id.Role) {
		return "", errorf(InvalidRequest, "a token's role is admin, operator, reader or worker; this is %q", id.Role)
	}
	if id.Role != RoleWorker && len(id.WorkerIDs)+len(id.Tasks) > 0 {
		return "", errorf(InvalidRequest, "worker ids and tasks restrict a token of role worker only; this one is %s", id.Role)
	}
	if err := checkPatterns(id.Tasks); err != nil {
		return "", err
	}
	existing, err := e.store.Tokens(ctx)
	if err != nil {
		return "", fromStore(err, "tokens")
	}
	if slices.ContainsFunc(existing, func(t store.Token) bool { return t.Name == name }) {
		return "", errorf(InvalidRequest, "a token named %q exists; delete it first, or choose another name", name)
	}
	token = tokenPrefix + e.newSecret()
	err = e.store.PutToken(ctx, store.Token{
		Name: name, Hash: hashSecret(token), Role: id.Role, WorkerIDs: id.WorkerIDs, Tasks: id.Tasks, CreatedAtMS: e.localMS(),
	})
	e.tokens.reset()
	return token, fromStore(err, "token")
}

// checkPatterns refuses what no task can fit: a token bound to it would be good
// for nothing, and only the refusal of its worker would say so.
func checkPatterns(patterns []string) error {
	for _, pattern := range patterns {
		name, isPrefix := strings.CutSuffix(pattern, ".*")
		switch {
		case pattern == "*":
		case definition.ReservedTask(name), isPrefix && definition.ReservedTask(name+"."):
			return errorf(InvalidRequest, "a token's task %q is %s; no worker offers it: leave it out", pattern, reservedTasks)
		case !definition.IsTaskName(name):
			hint := ""
			if meant, ok := strings.CutSuffix(pattern, "*"); ok && definition.IsTaskName(meant) {
				hint = fmt.Sprintf("; did you mean %s.*?", meant)
			}
			return errorf(InvalidRequest, "a token's task is a name such as payment.charge, a prefix such as payment.*, or * for every task; this is %q%s", pattern, hint)
		}
	}
	return nil
}

// minTokenBytes is the least that a token made elsewhere must have.
const minTokenBytes = 32

// AdoptToken stores a token that was made elsewhere, in place of one of the
// same name. changed is false where it is there already. InvalidRequest.
func (e *Engine) AdoptToken(ctx context.Context, name, token string, id Identity) (changed bool, err error) {
	if len(token) < minTokenBytes || strings.ContainsFunc(token, unicode.IsSpace) {
		return false, errorf(InvalidRequest, "a token has at least %d bytes and no spaces; this one has %d bytes", minTokenBytes, len(token))
	}
	existing, err := e.store.Tokens(ctx)
	if err != nil {
		return false, fromStore(err, "tokens")
	}
	t := store.Token{Name: name, Hash: hashSecret(token), Role: id.Role, WorkerIDs: id.WorkerIDs, Tasks: id.Tasks, CreatedAtMS: e.localMS()}
	if slices.ContainsFunc(existing, func(old store.Token) bool { return sameToken(old, t) }) {
		return false, nil
	}
	err = e.store.PutToken(ctx, t)
	e.tokens.reset()
	return err == nil, fromStore(err, "token")
}

func sameToken(a, b store.Token) bool {
	return a.Name == b.Name && a.Hash == b.Hash && a.Role == b.Role && slices.Equal(a.WorkerIDs, b.WorkerIDs) && slices.Equal(a.Tasks, b.Tasks)
}

// Tokens lists the API tokens, without their texts.
func (e *Engine) Tokens(ctx context.Context) ([]store.Token, error) {
	tokens, err := e.store.Tokens(ctx)
	return tokens, fromStore(err, "tokens")
}

// DeleteToken ends a token; other processes notice within a minute. NotFound.
func (e *Engine) DeleteToken(ctx context.Context, name string) error {
	err := e.store.DeleteToken(ctx, name)
	e.tokens.reset()
	return fromStore(err, "token "+name)
}

// Authenticate finds who a bearer token stands for. The token is compared by
// its hash, which tells an attacker's clock nothing about the token itself.
// Unauthenticated.
func (e *Engine) Authenticate(ctx context.Context, token string) (Identity, error) {
	hash := hashSecret(token)
	now := e.localMS()
	if id, ok := e.tokens.get(hash, now); ok {
		return id, nil
	}
	t, err := e.store.TokenByHash(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return Identity{}, errorf(Unauthenticated, "the bearer token is not valid; ask an administrator for one (`perigee token create`)")
	}
	if err != nil {
		return Identity{}, fromStore(err, "token")
	}
	id := Identity{Name: t.Name, Role: t.Role, WorkerIDs: t.WorkerIDs, Tasks: t.Tasks}
	e.tokens.put(hash, id, now)
	return id, nil
}

// tokenCache keeps who valid tokens stand for, for a minute. Invalid ones are
// not kept: guesses must not fill it.
type tokenCache struct {
	mu  sync.Mutex
	ids map[string]cachedIdentity
}

type cachedIdentity struct {
	Identity
	untilMS int64
}

const (
	tokenFreshMS    = 60_000
	maxCachedTokens = 10_000
)

func newTokenCache() *tokenCache { return &tokenCache{ids: map[string]cachedIdentity{}} }

func (c *tokenCache) get(hash string, nowMS int64) (Identity, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, ok := c.ids[hash]
	return id.Identity, ok && nowMS < id.untilMS
}

func (c *tokenCache) put(hash string, id Identity, nowMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ids) >= maxCachedTokens {
		clear(c.ids)
	}
	c.ids[hash] = cachedIdentity{id, nowMS + tokenFreshMS}
}

func (c *tokenCache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.ids)
}
