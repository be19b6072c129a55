package storetest

import (
	"testing"

	"perigee/store"
)

// Trait says what a backend cannot do, where the interface leaves it open.
type Trait int

// Serial: decisions under a lock run one after another, so that TryDrain waits
// for its turn instead of answering ErrBusy.
const Serial Trait = 1

// Lockless: the head is never held. Decisions under a lock are tried again
// where someone was faster, and in the end lose like any commit.
const Lockless Trait = 2

// rule is one rule of the contract and its check.
type rule struct {
	name  string
	check func(t *testing.T, s store.Store)
}

// Run checks every rule against the stores that open makes. Each store must be
// on a migrated database that holds nothing and that nobody else uses; open
// closes it by t.Cleanup. Rules run in parallel.
func Run(t *testing.T, open func(t *testing.T) store.Store, traits ...Trait) {
	areas := []struct {
		name  string
		rules []rule
	}{
		{"Definitions", definitionRules},
		{"Load", loadRules},
		{"Commit", commitRules},
		{"CommitTasks", commitTaskRules},
		{"Claim", claimRules},
		{"ClaimRaces", claimRaceRules},
		{"Inbox", inboxRules},
		{"HeadLocked", lockRules(traits)},
		{"Due", dueRules},
		{"Sessions", sessionRules},
		{"Outbox", outboxRules},
		{"History", historyRules},
		{"Executions", executionRules},
		{"Tokens", tokenRules},
		{"Text", textRules},
		{"Calls", callRules},
	}
	for _, area := range areas {
		t.Run(area.name, func(t *testing.T) {
			for _, r := range area.rules {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.check(t, open(t))
				})
			}
		})
	}
}
