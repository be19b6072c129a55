// Package push calls workers that do not poll, so that they, too, may scale to
// zero. Routes (routes.go) say which tasks go to which target: an HTTPS URL,
// whose calls are signed (sign.go), or a Lambda function. Pusher (push.go) hands
// an assignment over; the worker reports its result as any other does.
//
// The package keeps nothing and retries nothing: what could not be delivered is
// a failed attempt, which the step's retry policy looks after. docs/push.md is
// the page for users.
package push
