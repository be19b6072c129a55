package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"perigee/engine/decide"
	"perigee/engine/exactjson"
	"perigee/engine/traceid"
	"perigee/store"
)

// Bounds of the worker protocol.
const (
	maxTasksPerPoll = 32
	maxContracts    = 500
	maxNameBytes    = 200
	maxHeldTokens   = 1000
)

// builtinPrefix marks the sessions by which a process runs tasks itself.
const builtinPrefix = "builtin:"

// reservedPrefixes are names that no worker may announce.
var reservedPrefixes = []string{"orbit.", "perigee.", "workflow:", "http.request"}

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
	warnings, err := e.contractWarnings(ctx, r.Contracts)
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
		for _, prefix := range reservedPrefixes {
			if strings.HasPrefix(c.TaskName, prefix) {
				return errorf(ReservedTask, "task names that begin with %s are the server's own; choose another name than %q", prefix, c.TaskName)
			}
		}
	}
	return nil
}

// contractWarnings names the announced tasks of which registered workflows use
// another version: such a worker would wait for work that never comes.
func (e *Engine) contractWarnings(ctx context.Context, contracts []store.Contract) ([]string, error) {
	used, err := e.contractsInUse(ctx)
	if err != nil {
		return nil, err
	}
	warnings := []string{}
	for _, c := range contracts {
		versions := used[c.TaskName]
		if len(versions) > 0 && !slices.Contains(versions, c.ContractVersion) {
			warnings = append(warnings, fmt.Sprintf("no registered workflow uses %s@%s; they use version %s", c.TaskName, c.ContractVersion, strings.Join(versions, ", ")))
		}
	}
	return warnings, nil
}

// contractsInUse are the versions of each task that registered workflows use.
func (e *Engine) contractsInUse(ctx context.Context) (map[string][]string, error) {
	rows, err := e.store.Definitions(ctx, "")
	if err != nil {
		return nil, fromStore(err, "definitions")
	}
	used := map[string][]string{}
	for _, row := range rows {
		for name, version := range row.Tasks {
			if !row.Retired && !slices.Contains(used[name], version) {
				used[name] = append(used[name], version)
			}
		}
	}
	for _, versions := range used {
		slices.Sort(versions)
	}
	return used, nil
}

// Poll hands out ready tasks, held until there is one or the wait is over.
// Whoever polls also sees to a few due executions. UnknownSession.
func (e *Engine) Poll(ctx context.Context, r PollRequest) (Polled, error) {
	session, err := e.session(ctx, r.SessionID)
	if err != nil {
		return Polled{}, err
	}
	if r.MaxTasks == 0 {
		r.MaxTasks = 1
	}
	if r.MaxTasks < 1 || r.MaxTasks > maxTasksPerPoll {
		return Polled{}, errorf(InvalidRequest, "max_tasks is 1 to %d; this is %d", maxTasksPerPoll, r.MaxTasks)
	}
	if r.PollID == "" {
		r.PollID = e.opts.NewID()
	}
	queues := queuesOf(session)
	claim := store.ClaimRequest{
		Session: session.Hash, WorkerID: session.WorkerID, Queues: queues, ClaimKey: r.PollID,
		Secrets: e.newSecrets(r.MaxTasks), SessionTimeoutMS: e.opts.SessionTimeout.Milliseconds(),
	}
	wait := min(r.Wait, maxWait)
	if !e.opts.HoldPolls {
		wait = 0
	}
	for end := time.Now().Add(wait); ; {
		w := e.hub.waitQueues(queues)
		tasks, err := e.claim(ctx, claim)
		left := time.Until(end)
		if err != nil || len(tasks) > 0 || left <= 0 || ctx.Err() != nil || e.hub.isClosed() {
			e.hub.leaveQueues(w)
			return Polled{Tasks: tasks, NextPoll: e.nextPoll(len(tasks))}, err
		}
		e.hub.open(w, &recipient{session: session, queues: queues, claimKey: r.PollID, secrets: claim.Secrets})
		if given := e.awaitQueue(ctx, w, left); len(given) > 0 {
			return Polled{Tasks: given, NextPoll: e.nextPoll(len(given))}, nil
		}
		e.touch(ctx, session.Hash)
	}
}

// awaitQueue holds a poll until a task may be ready, or a commit has handed it
// some.
func (e *Engine) awaitQueue(ctx context.Context, w *waiter, left time.Duration) []Assignment {
	timer := time.NewTimer(min(left, lookAgain))
	defer timer.Stop()
	select {
	case <-w.ready:
		return w.given // it was taken off the list when it was woken
	case <-timer.C:
	case <-ctx.Done():
	}
	return e.hub.leaveQueues(w)
}

// idlePoll is when an idle worker may come again where polls are not held.
const idlePoll = time.Second

func (e *Engine) nextPoll(tasks int) time.Duration {
	if tasks > 0 || e.opts.HoldPolls {
		return 0
	}
	return idlePoll
}

// claim asks the store for tasks and advances the due executions it names.
func (e *Engine) claim(ctx context.Context, r store.ClaimRequest) ([]Assignment, error) {
	r.NowMS = e.nowMS()
	c, err := e.store.Claim(ctx, r)
	if err != nil {
		return nil, fromStore(err, "tasks")
	}
	e.clock.learn(c.NowMS)
	if !c.Known {
		e.sessions.drop(r.Session)
		return nil, unknownSession()
	}
	for _, id := range c.Executions {
		e.states.moved(id)
		e.hub.changed(id)
	}
	assignments := make([]Assignment, len(c.Tasks))
	for i, t := range c.Tasks {
		assignments[i] = assignmentOf(t)
	}
	for _, id := range c.DueIDs {
		if err := e.advance(ctx, id); err != nil {
			e.log.WarnContext(ctx, "a due execution waits for the next tick", "execution_id", id, "error", err)
		}
	}
	if len(c.Tasks) == 0 && len(c.DueIDs) > 0 {
		// What was due may have made a task ready.
		return e.claimOnce(ctx, r)
	}
	return assignments, nil
}

func (e *Engine) claimOnce(ctx context.Context, r store.ClaimRequest) ([]Assignment, error) {
	r.NowMS = e.nowMS()
	c, err := e.store.Claim(ctx, r)
	if err != nil {
		return nil, fromStore(err, "tasks")
	}
	assignments := make([]Assignment, len(c.Tasks))
	for i, t := range c.Tasks {
		assignments[i] = assignmentOf(t)
	}
	return assignments, nil
}

func assignmentOf(t store.Task) Assignment {
	return Assignment{
		Token:           taskToken{t.ExecutionID, t.Unit, t.WorkerID, t.Secret}.String(),
		ExecutionID:     t.ExecutionID,
		Workflow:        t.Workflow,
		WorkflowVersion: t.WorkflowVersion,
		StepID:          t.Unit,
		TaskName:        t.TaskName,
		ContractVersion: t.ContractVersion,
		Input:           exactjson.Value(t.Input),
		IdempotencyKey:  t.Key,
		Attempt:         t.Attempt,
		Redelivery:      t.Redelivery,
		DeadlineMS:      t.DeadlineMS,
		TimeoutMS:       t.TimeoutMS,
		TraceParent:     traceid.Parent(t.ExecutionID, t.Unit, t.Attempt),
	}
}

// queuesOf are the queues whose tasks a session takes: its own language's and
// those of any.
func queuesOf(s store.Session) []string {
	queues := make([]string, 0, 2*len(s.Contracts))
	for _, c := range s.Contracts {
		name := c.TaskName + "@" + c.ContractVersion + "/"
		queues = append(queues, name+s.Runtime)
		if s.Runtime != "any" {
			queues = append(queues, name+"any")
		}
	}
	return queues
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
	return cancel, e.neverReceived(ctx, touched, listed)
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
func (e *Engine) neverReceived(ctx context.Context, t store.Touched, listed map[string]bool) error {
	old := t.NowMS - 2*e.opts.HeartbeatInterval.Milliseconds()
	for _, row := range t.Held {
		if row.State != store.TaskDispatched || listed[row.TokenHash] || row.DispatchedMS > old {
			continue
		}
		err := e.do(ctx, row.ExecutionID, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
			if !m.AtMostOnce(row.Unit) { // there the session time-out decides
				m.Lost(row.Unit, row.TokenHash, decide.ReasonNeverReceived)
			}
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Unregister ends a session; its attempts are redelivered at once.
func (e *Engine) Unregister(ctx context.Context, sessionID string) error {
	hash := hashSecret(sessionID)
	touched, err := e.store.DeleteSession(ctx, hash)
	e.sessions.drop(hash)
	if errors.Is(err, store.ErrNotFound) {
		return unknownSession()
	}
	if err != nil {
		return fromStore(err, "session")
	}
	for _, row := range touched.Held {
		err := e.do(ctx, row.ExecutionID, &job{apply: func(m *decide.Machine, _ *store.Loaded) error {
			m.Lost(row.Unit, row.TokenHash, decide.ReasonUnregistered)
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// Workers lists the workers that have a session, by id.
func (e *Engine) Workers(ctx context.Context) ([]WorkerInfo, error) {
	sessions, err := e.store.Workers(ctx)
	if err != nil {
		return nil, fromStore(err, "workers")
	}
	online := e.localMS() - e.opts.SessionTimeout.Milliseconds()
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

// SessionWorker is the worker that opened a session. UnknownSession.
func (e *Engine) SessionWorker(ctx context.Context, sessionID string) (workerID string, err error) {
	s, err := e.session(ctx, sessionID)
	return s.WorkerID, err
}

// session finds a session by its id, from memory where it was seen lately.
func (e *Engine) session(ctx context.Context, id string) (store.Session, error) {
	hash := hashSecret(id)
	if s, ok := e.sessions.get(hash); ok {
		e.touch(ctx, hash)
		return s, nil
	}
	s, err := e.store.Session(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return s, unknownSession()
	}
	if err != nil {
		return s, fromStore(err, "session")
	}
	e.sessions.put(s, s.LastSeenMS)
	e.touch(ctx, hash)
	return s, nil
}

func (e *Engine) touchAgeMS() int64 { return e.opts.HeartbeatInterval.Milliseconds() / 2 }

// touch writes that a session is alive, at most every half heartbeat interval.
// A failure only makes the worker look idle for longer.
func (e *Engine) touch(ctx context.Context, hash string) {
	if !e.sessions.due(hash, e.localMS(), e.touchAgeMS()) {
		return
	}
	if _, err := e.store.TouchSession(ctx, hash, e.nowMS(), e.touchAgeMS()); err != nil {
		e.log.WarnContext(ctx, "a worker's sign of life could not be written", "error", err)
	}
}

// sessionCache keeps sessions, which never change until they end, and when
// each was last touched. A claim checks that the session still exists.
type sessionCache struct {
	mu       sync.Mutex
	sessions map[string]*cachedSession
}

type cachedSession struct {
	store.Session
	touchedMS int64
}

const maxSessions = 10_000

func newSessionCache() *sessionCache {
	return &sessionCache{sessions: map[string]*cachedSession{}}
}

func (c *sessionCache) get(hash string) (store.Session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[hash]
	if !ok {
		return store.Session{}, false
	}
	return s.Session, true
}

func (c *sessionCache) put(s store.Session, touchedMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) >= maxSessions {
		clear(c.sessions)
	}
	c.sessions[s.Hash] = &cachedSession{s, touchedMS}
}

func (c *sessionCache) drop(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, hash)
}

func (c *sessionCache) seen(hash string, nowMS int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.sessions[hash]; ok {
		s.touchedMS = max(s.touchedMS, nowMS)
	}
}

// due reports whether a touch is worth a write, and counts it as made.
func (c *sessionCache) due(hash string, nowMS, ageMS int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[hash]
	if !ok || nowMS-s.touchedMS < ageMS {
		return false
	}
	s.touchedMS = nowMS
	return true
}
