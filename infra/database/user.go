package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"perigee/infra/cloud"
	"perigee/infra/config"
)

// MakeUser makes the database user of the other functions, who may read and
// write rows and nothing else, and lets it in: by IAM's role on RDS, by the
// functions' own roles on Aurora DSQL. What is there already stays. It runs
// after the schema was made, for rights are given to tables that exist.
func MakeUser(ctx context.Context, s config.Settings, c *cloud.Cloud) error {
	o, err := pgx.ParseConfig(s.Database)
	if err != nil {
		return fmt.Errorf("make user %s: PERIGEE_DATABASE cannot be read", s.DatabaseAppUser)
	}
	before, err := beforeConnect(s, c)
	if err == nil && before != nil {
		err = before(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("make user %s: %w", s.DatabaseAppUser, err)
	}
	conn, err := pgx.ConnectConfig(ctx, o)
	if err != nil {
		return fmt.Errorf("make user %s: %w", s.DatabaseAppUser, err)
	}
	defer conn.Close(ctx)
	if err := makeUser(ctx, conn, s); err != nil {
		return fmt.Errorf("make user %s: %w", s.DatabaseAppUser, err)
	}
	return nil
}

const roleExistsSQL = `SELECT count(*) FROM pg_roles WHERE rolname = $1`

func makeUser(ctx context.Context, conn *pgx.Conn, s config.Settings) error {
	exists := func(role string) (bool, error) {
		var n int
		err := conn.QueryRow(ctx, roleExistsSQL, role).Scan(&n)
		return n > 0, err
	}
	there, err := exists(s.DatabaseAppUser)
	if err != nil {
		return err
	}
	user := pgx.Identifier{s.DatabaseAppUser}.Sanitize()
	var statements []string
	if !there {
		statements = append(statements, `CREATE ROLE `+user+` WITH LOGIN`)
	}
	statements = append(statements,
		`GRANT USAGE ON SCHEMA public TO `+user,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO `+user)
	switch s.DatabaseAuth {
	case config.AuthIAM:
		// A server that is no RDS has no such role, and lets users in its own way.
		rds, err := exists("rds_iam")
		if err != nil {
			return err
		}
		if rds {
			statements = append(statements, `GRANT rds_iam TO `+user)
		}
		fallthrough
	case config.AuthPassword, config.AuthSecret:
		// A process that is frozen in the middle of a transaction holds locks.
		statements = append(statements, `ALTER ROLE `+user+` SET idle_in_transaction_session_timeout = '5s'`)
	case config.AuthDSQL:
		for arn := range strings.SplitSeq(s.DatabaseAppARNs, ",") {
			if arn = strings.TrimSpace(arn); arn != "" {
				statements = append(statements, `AWS IAM GRANT `+user+` TO '`+strings.ReplaceAll(arn, `'`, `''`)+`'`)
			}
		}
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
