package store

import "fmt"

// OldestRelease is the oldest release that works with the schema that this
// release's migrations make, named by the version of its own schema. Migrate
// writes it into the database, where an older release that finds a newer schema
// reads whether it may go on: that is how a deployment is taken back.
//
// Raise it with a migration that an older release cannot live with, to the
// first version that can: one that removes or renames a table or column, adds a
// column that must be given, a constraint that older writes may break, or a
// meaning that older statements do not keep. A migration that only adds tables,
// indexes, or columns that may be NULL leaves it as it is. Better still, let one
// release stop using what only the next one removes.
const OldestRelease = 26

// OldestReleaseTable is the version whose migration makes the table of that one
// row; releases before it go on with their own schema alone.
const OldestReleaseTable = 26

// CheckVersion decides whether a release works with a database: version and
// release are those of the schemas, oldest is what the database says of itself,
// 0 where it says nothing. The error is ErrSchema.
func CheckVersion(version, release, oldest int64) error {
	switch {
	case version < release:
		return fmt.Errorf("%w: the database is at version %d, this release needs %d; run `perigee migrate`", ErrSchema, version, release)
	case version > release && (oldest == 0 || oldest > release):
		return fmt.Errorf("%w: the database is at version %d, this release knows %d; use a newer release", ErrSchema, version, release)
	}
	return nil
}
