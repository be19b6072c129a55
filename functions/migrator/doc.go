// Package migrator is what the migration function answers: CloudFormation, for
// which it is a custom resource, people who make tokens with it, since nobody
// else reaches the database, and any other event with a migration.
//
// Settings that are wrong are its answer, too, and not the end of its start:
// a deployment that brings them fails at once, with the reason, and before the
// other functions have them.
//
// Start reading at Function.
package migrator
