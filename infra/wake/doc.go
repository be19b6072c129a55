// Package wake sets the next wake-up in tick mode on-demand, where nothing looks
// at the clock by itself: a call that leaves work for a moment before the one
// that is set sees to it that the tick function is called then.
//
// There is one schedule for all instances. To what it is set stands in a row of
// the database, and it is moved to an earlier moment only, as long as the one
// that it has is to come. So nobody puts off another's, and a call that leaves
// work for later than that has nothing to set.
//
// Start reading at Keeper.
package wake
