// Package wake sets the next wake-up in tick mode on-demand, where nothing looks
// at the clock by itself: a call that leaves work for a moment before the one
// that is set sees to it that the tick function is called then.
//
// Start reading at Keeper.
package wake
