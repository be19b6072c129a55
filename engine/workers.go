package engine

import (
	"context"
	"errors"
	"strings"

	"perigee/engine/decide"
	"perigee/engine/definition"
	"perigee/store"
)

// Bounds of the worker protocol.
const (
	maxTasksPerPoll = 32
	maxContracts    = 500
	maxNameBytes    = 200
	maxHeldTokens   = 1000
)

// reservedTasks says which names definition.ReservedTask means.
const reservedTasks = "the server's own, as http.request is and all that begins with orbit., perigee. or workflow:"

// builtinPrefix marks the sessions by which a process runs tasks itself.
const builtinPrefix = "builtin:"

// RegisterWorker opens a session. Errors: InvalidRequest, ReservedTask.
func (e *Engine) RegisterWorker(ctx context.Context, r RegisterRequest) (WorkerRegistered, error) {
	r.Runtime = strings.ToLower(r.Runtime)
	if err := checkRegistration(r); err != nil {
		return WorkerRegistered{}, err
	}
	id := e.opts.NewID() + "." + e.newSecret()
	session := store.Session{
		Hash: hashSecret(id), WorkerID: r.WorkerID, Runtime: r.Runtime, SDK: r.SDK,
		Contracts: r.Contracts, NowMS: e.nowMS(),
	}
	if err := e.store.PutSession(ctx, session); err != nil {
		return WorkerRegistered{}, fromStore(err, "session")
	}
	e.sessions.put(session, e.localMS())
	warnings, err := e.contractWarnings(ctx, r)
	if err != nil {
		return WorkerRegistered{}, err
	}
	return WorkerRegistered{
		SessionID:         id,
		HeartbeatInterval: e.opts.HeartbeatInterval,
		SessionTimeout:    e.opts.SessionTimeout,
		Warnings:          warnings,
	}, nil
}

func checkRegistration(r RegisterRequest) error {
	switch {
	case r.WorkerID == "" || len(r.WorkerID) > maxNameBytes || strings.Contains(r.WorkerID, tokenSeparator):
		return errorf(InvalidRequest, "worker_id has 1 to %d bytes; this one has %d", maxNameBytes, len(r.WorkerID))
	case r.Runtime == "" || len(r.Runtime) > maxNameBytes:
		return errorf(InvalidRequest, "runtime has 1 to %d bytes, such as \"go\" or \"python\"", maxNameBytes)
	case len(r.SDK) > maxNameBytes:
		return errorf(InvalidRequest, "sdk has at most %d bytes; this one has %d", maxNameBytes, len(r.SDK))
	case len(r.Contracts) == 0 || len(r.Contracts) > maxContracts:
		return errorf(InvalidRequest, "contracts has 1 to %d entries {task_name, contract_version}; this one has %d", maxContracts, len(r.Contracts))
	}
	for _, c := range r.Contracts {
		if c.TaskName == "" || len(c.TaskName) > maxNameBytes || c.ContractVersion == "" || len(c.ContractVersion) > maxNameBytes {
			return errorf(InvalidRequest, "each contract has a task_name and a contract_version of 1 to %d bytes", maxNameBytes)
		}
		if definition.ReservedTask(c.TaskName) {
			return errorf(ReservedTask, "the task name %q is %s; choose another", c.TaskName, reservedTasks)
		}
	}
	return nil
}

// Heartbeat keeps a session alive and says which of its attempts to stop. With
// a list of held tokens, attempts that the worker never received are found,
// too. UnknownSession.
func (e *Engine) Heartbeat(ctx context.Context, sessionID string, tokens []string) (cancel []string, err error) {
	if len(tokens) > maxHeldTokens {
		return nil, errorf(InvalidRequest, "tokens has at most %d entries; this one has %d", maxHeldTokens, len(tokens))
	}
	hash := hashSecret(sessionID)
	touched, err := e.store.TouchSession(ctx, hash, e.nowMS(), e.touchAgeMS())
	if errors.Is(err, store.ErrNotFound) {
		e.sessions.drop(hash)
		return nil, unknownSession()
	}
	if err != nil {
		return nil, fromStore(err, "session")
	}
	e.sessions.seen(hash, e.localMS())
	if tokens == nil {
		return stopped(touched), nil
	}
	held := map[string]store.HeldTask{}
	for _, t := range touched.Held {
		held[t.TokenHash] = t
	}
	listed := map[string]bool{}
	cancel = []string{}
	for _, token := range tokens {
		t, ok := parseToken(token)
		if !ok {
			continue
		}
		listed[t.hash()] = true
		if row, there := held[t.hash()]; !there || row.Stop {
			cancel = append(cancel, token)
		}
	}
	e.neverReceived(ctx, touched, listed)
	return cancel, nil
}

func stopped(t store.Touched) []string {
	cancel := []string{}
	for _, row := range t.Held {
		if row.Stop {
			cancel = append(cancel, taskToken{row.ExecutionID, row.Unit, t.WorkerID, row.Secret}.String())
		}
	}
	return cancel
}

// neverReceived redelivers attempts that a live session does not know of: the
// answer that handed them out was lost.
func (e *Engine) neverReceived(ctx context.Context, t store.Touched, listed map[string]bool) {
	old := t.NowMS - 2*e.opts.HeartbeatInterval.Milliseconds()
	for _, row := range t.Held {
		if row.State != store.TaskDispatched || listed[row.TokenHash] || row.DispatchedMS > old {
			continue
		}
		e.lose(ctx, row.ExecutionID, func(m *decide.Machine) {
			if !m.AtMostOnce(row.Unit) { // there the session time-out decides
				m.Lost(row.Unit, row.TokenHash, decide.ReasonNeverReceived)
			}
		})
	}
}

// lose records that an attempt is lost. Where that fails it is a matter of that
// execution, not of the worker or its other attempts: the silence of the session
// brings it back later.
func (e *Engine) lose(ctx context.Context, execution string, lost func(m *decide.Machine)) {
	err := e.do(ctx, execution, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
		lost(m)
		return nil
	}})
	if err != nil {
		e.log.WarnContext(ctx, "an attempt that is lost waits for its session's time-out", "execution_id", execution, "error", err)
	}
}

// giveBack has tasks redelivered that were handed to a session while it ended.
func (e *Engine) giveBack(ctx context.Context, tasks []Assignment) {
	ctx = context.WithoutCancel(ctx)
	for _, a := range tasks {
		if t, ok := parseToken(a.Token); ok {
			e.lose(ctx, t.execution, func(m *decide.Machine) { m.Lost(t.unit, t.hash(), decide.ReasonUnregistered) })
		}
	}
}

// Unregister ends a session; its attempts are redelivered at once.
func (e *Engine) Unregister(ctx context.Context, sessionID string) error {
	hash := hashSecret(sessionID)
	// Before, so that no commit hands a poll of the session what is then not in
	// the answer; and after, for a poll that came in between.
	e.hub.endSession(hash)
	touched, err := e.store.DeleteSession(ctx, hash)
	e.sessions.drop(hash)
	e.hub.endSession(hash)
	if errors.Is(err, store.ErrNotFound) {
		return unknownSession()
	}
	if err != nil {
		return fromStore(err, "session")
	}
	for _, row := range touched.Held {
		e.lose(ctx, row.ExecutionID, func(m *decide.Machine) { m.Lost(row.Unit, row.TokenHash, decide.ReasonUnregistered) })
	}
	return nil
}

// Workers lists the workers that have a session, by id.
func (e *Engine) Workers(ctx context.Context) ([]WorkerInfo, error) {
	sessions, err := e.store.Workers(ctx)
	if err != nil {
		return nil, fromStore(err, "workers")
	}
	online := e.storeMS() - e.opts.SessionTimeout.Milliseconds()
	infos := []WorkerInfo{}
	for _, s := range sessions {
		if n := len(infos); n == 0 || infos[n-1].WorkerID != s.WorkerID {
			infos = append(infos, WorkerInfo{WorkerID: s.WorkerID, RegisteredAtMS: s.RegisteredAtMS})
		}
		w := &infos[len(infos)-1]
		// The latest session says what the worker is now.
		w.Runtime, w.SDK, w.Contracts = s.Runtime, s.SDK, s.Contracts
		w.LastSeenMS = max(w.LastSeenMS, s.LastSeenMS)
		w.Online = w.LastSeenMS > online
		w.Sessions++
		w.Inflight += s.Inflight
	}
	return infos, nil
}

func unknownSession() *Error {
	return errorf(UnknownSession, "there is no such worker session; register again")
}
