// Package instance is what one instance of a function keeps between calls: its
// settings, logger, store and engine, made of the environment.
//
// Nothing is connected when an instance starts: the first call that needs the
// database makes the connection, one that broke is made again by the next, and
// the schema is looked at once. What is wrong with the settings ends the
// instance at once, with one line of log for each fault; what is wrong with the
// database is the answer of the calls that need it, for it may pass.
//
// Start reading at New.
package instance
