package storetest

import (
	"testing"

	"perigee/store"
)

// heldBy are the rows that a session holds, as Touched shows them.
func heldBy(tasks ...store.Task) []store.HeldTask {
	var held []store.HeldTask
	for _, task := range tasks {
		held = append(held, store.HeldTask{
			Key: task.Key, ExecutionID: task.ExecutionID, Unit: task.Unit, State: task.State, TokenHash: task.TokenHash,
			Secret: task.Secret, DispatchedMS: task.DispatchedMS, Attempt: task.Attempt, Stop: task.Stop,
		})
	}
	return held
}

// sessionWithTasks registers s1 at epoch, with a dispatched and a reported row,
// beside rows that it does not hold.
func sessionWithTasks(t *testing.T, s store.Store) []store.HeldTask {
	t.Helper()
	register(t, s, "s1", epoch)
	a, b, other := dispatchedTask("e2", "a", "s1", "a"), dispatchedTask("e1", "b", "s1", "b"), dispatchedTask("e1", "c", "s2", "c")
	a.Stop, a.Attempt = true, 4
	b.State = store.TaskReported
	b.Report = &store.Report{Key: b.Key, TokenHash: b.TokenHash, Success: true, Payload: "{}", AtMS: epoch}
	create(t, s, "e1", b, other, readyTask("e1", "d", 2))
	create(t, s, "e2", a)
	return heldBy(b, a)
}

var sessionRules = []rule{
	{"KeepsASession", func(t *testing.T, s store.Store) {
		want := store.Session{Hash: "s1", WorkerID: "w1", Runtime: "go", SDK: "go/1.0.0",
			Contracts: []store.Contract{{TaskName: "charge", ContractVersion: "1.0.0"}, {TaskName: "a", ContractVersion: "2"}}}
		request := want
		request.NowMS = epoch
		must(t, s.PutSession(t.Context(), request))
		want.RegisteredAtMS, want.LastSeenMS = epoch, epoch
		equal(t, "session", want, got(s.Session(t.Context(), "s1"))(t))
		_, err := s.Session(t.Context(), "s2")
		wantError(t, err, store.ErrNotFound)
	}},
	{"RegistersTheSameSessionAgain", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		register(t, s, "s1", epoch+9)
		equal(t, "last seen", epoch+9, got(s.Session(t.Context(), "s1"))(t).LastSeenMS)
		equal(t, "sessions", 1, len(got(s.Workers(t.Context()))(t)))
	}},
	{"TouchMovesLastSeenWhereItIsOld", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		for _, step := range []struct{ now, minAge, want int64 }{
			{epoch + 4, 5, epoch}, {epoch + 7, 5, epoch + 7}, {epoch + 8, 0, epoch + 8}, {epoch, 0, epoch + 8},
		} {
			touched := got(s.TouchSession(t.Context(), "s1", step.now, step.minAge))(t)
			equal(t, "touched", store.Touched{NowMS: step.now, WorkerID: "w1"}, touched)
			equal(t, "last seen", step.want, got(s.Session(t.Context(), "s1"))(t).LastSeenMS)
		}
		_, err := s.TouchSession(t.Context(), "s2", epoch, 0)
		wantError(t, err, store.ErrNotFound)
	}},
	{"TouchListsWhatTheSessionHolds", func(t *testing.T, s store.Store) {
		held := sessionWithTasks(t, s)
		for _, minAge := range []int64{minute, 0} {
			touched := got(s.TouchSession(t.Context(), "s1", epoch+1, minAge))(t)
			equal(t, "touched", store.Touched{NowMS: epoch + 1, WorkerID: "w1", Held: held}, touched)
		}
	}},
	{"DeleteListsWhatTheSessionHeld", func(t *testing.T, s store.Store) {
		held := sessionWithTasks(t, s)
		touched := got(s.DeleteSession(t.Context(), "s1"))(t)
		equal(t, "held", held, touched.Held)
		equal(t, "worker", "w1", touched.WorkerID)
		_, err := s.DeleteSession(t.Context(), "s1")
		wantError(t, err, store.ErrNotFound)
		equal(t, "rows stay", 3, len(tasksOf(t, s, "e1")))
	}},
	{"WorkersAreListedWithTheirLoad", func(t *testing.T, s store.Store) {
		put := func(hash, worker string, at int64) store.Session {
			session := store.Session{Hash: hash, WorkerID: worker, Runtime: "go", SDK: "go/1", RegisteredAtMS: at, LastSeenMS: at}
			request := session
			request.NowMS = at
			must(t, s.PutSession(t.Context(), request))
			return session
		}
		late, early, other := put("s3", "w1", epoch+9), put("s2", "w1", epoch+5), put("s9", "B", epoch+6)
		reported := dispatchedTask("e1", "b", "s2", "b")
		reported.State = store.TaskReported
		reported.Report = &store.Report{Key: reported.Key, TokenHash: reported.TokenHash, Success: true, Payload: "{}", AtMS: epoch}
		create(t, s, "e1", dispatchedTask("e1", "a", "s2", "a"), reported, dispatchedTask("e1", "c", "s9", "c"))
		equal(t, "workers", []store.WorkerSession{{Session: other, Inflight: 1}, {Session: early, Inflight: 2}, {Session: late}},
			got(s.Workers(t.Context()))(t))
	}},
	{"DropsSilentSessions", func(t *testing.T, s store.Store) {
		register(t, s, "s1", epoch)
		register(t, s, "s2", epoch+1)
		must(t, s.DropSessions(t.Context(), epoch+1))
		_, err := s.Session(t.Context(), "s1")
		wantError(t, err, store.ErrNotFound)
		equal(t, "kept", "w1", got(s.Session(t.Context(), "s2"))(t).WorkerID)
	}},
}
