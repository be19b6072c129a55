package postgres

import (
	"context"

	"perigee/store"
)

const wakeUpSQL = `
SELECT at, version
FROM wake_up
WHERE id = 1`

// WakeUp reads to which moment the one schedule is set that calls the tick
// function. Only functions have such a schedule, and they have Postgres.
func (s *Store) WakeUp(ctx context.Context) (store.WakeUp, error) {
	var w store.WakeUp
	err := s.read(ctx, "read wake-up", func(sc *script) {
		w = store.WakeUp{}
		sc.add(wakeUpSQL, one(&w.AtMS, &w.Version))
	})
	return w, err
}

const setWakeUpSQL = `
INSERT INTO wake_up (id, at, version)
VALUES (1, $1, $2 + 1)
ON CONFLICT (id) DO UPDATE
SET at = excluded.at, version = excluded.version
WHERE wake_up.version = $2`

// SetWakeUp writes to which moment the schedule has been set. False: somebody has
// set it since seen was read.
func (s *Store) SetWakeUp(ctx context.Context, seen store.WakeUp, atMS int64) (set bool, err error) {
	err = s.write(ctx, "set wake-up", func(sc *script) {
		set = false
		sc.add(setWakeUpSQL, nil, atMS, seen.Version).done = func(affected int64) { set = affected > 0 }
		sc.wrote = func() bool { return set }
	})
	return set && err == nil, err
}
