// Package storetest is the suite that defines a store: every backend runs it,
// and a fault found in one backend becomes a rule here for all.
//
// Each rule gets a store on an empty, migrated database. Moments come in as
// parameters, so that nothing waits; the few rules about the database's own
// clock allow it to be an hour off. Whatever two backends could read
// differently in package store is settled by a rule of this package.
//
// Start reading at Run; build.go has what the rules are made from.
package storetest
