// Package ticker looks after time from a function that is called now and then:
// timers, retries, deadlines, lost workers, messages between executions. What
// is due stands in the database; a tick that comes late, twice, at the same
// time as another or not at all costs promptness and nothing else.
//
// Start reading at Ticker.Run.
package ticker
