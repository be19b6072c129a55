// Package watch tells others what goes through a store: metrics count it, and
// wake-ups are set by it. Watchers see what was written after it was, and
// cannot change or fail it.
//
// Start reading at Store.
package watch
