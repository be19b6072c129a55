package config_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perigee/infra/config"
)

// function is a function's least environment, changed by the test.
func function(change map[string]string) config.Source {
	m := map[string]string{"PERIGEE_DATABASE": "postgres://perigee@db.internal/perigee", "AWS_REGION": "eu-central-1"}
	for name, text := range change {
		m[name] = text
	}
	return from(m)
}

func TestLoadFunction_HasDefaultsOfItsOwn(t *testing.T) {
	got, err := config.LoadFunction(function(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got.DatabaseConnections != 1 || got.LogFormat != config.LogJSON || got.LogLevel != slog.LevelInfo ||
		got.TickMode != config.TickPrecise || got.Region != "eu-central-1" || got.DatabaseAuth != config.AuthPassword ||
		got.Auth != config.AuthTokens || got.AuthClaim != "perigee_role" {
		t.Errorf("got %+v", got)
	}
}

func TestLoadFunction_ChecksTheDatabasesCertificate(t *testing.T) {
	for given, want := range map[string]string{
		"postgres://perigee@db.internal/perigee":                    "postgres://perigee@db.internal/perigee?sslmode=verify-full",
		"postgres://perigee@localhost/perigee":                      "postgres://perigee@localhost/perigee",
		"postgres://perigee@localhost/perigee?sslmode=disable":      "postgres://perigee@localhost/perigee?sslmode=disable",
		"postgres://perigee@localhost/perigee?host=/run/postgresql": "postgres://perigee@localhost/perigee?host=/run/postgresql",
		"postgres://perigee@127.0.0.1:5433/perigee":                 "postgres://perigee@127.0.0.1:5433/perigee",
		"postgres://perigee:a%40b@db.internal/perigee?user=x&a=b+c": "postgres://perigee:a%40b@db.internal/perigee?a=b+c&sslmode=verify-full&user=x",
	} {
		got, err := config.LoadFunction(function(map[string]string{"PERIGEE_DATABASE": given}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Database); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Each way to log in sends what opens the database, or rows that are secret.
func TestLoadFunction_RefusesADatabaseWhoseCertificateIsNotChecked(t *testing.T) {
	logins := []map[string]string{
		{"PERIGEE_DATABASE_AUTH": "password"}, {"PERIGEE_DATABASE_AUTH": "secret", "PERIGEE_DATABASE_SECRET": "db"},
		{"PERIGEE_DATABASE_AUTH": "iam"}, {"PERIGEE_DATABASE_AUTH": "dsql"},
	}
	for _, environment := range logins {
		for _, mode := range []string{"disable", "allow", "prefer", "require", "verify-ca"} {
			for _, database := range []string{"postgres://u:hunter2@db.internal/d?sslmode=" + mode, "postgres://u:hunter2@localhost/d?host=db.internal&sslmode=" + mode} {
				environment["PERIGEE_DATABASE"] = database
				_, err := config.LoadFunction(function(environment))
				if err == nil || !strings.Contains(err.Error(), "sslmode is "+mode) || !strings.Contains(err.Error(), "use verify-full") || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s with %s: got %v", database, environment["PERIGEE_DATABASE_AUTH"], err)
				}
			}
		}
	}
}

// A column of DSQL holds 1 MiB: what is larger would fail when it is written.
func TestLoadFunction_DSQLTakesSmallerValues(t *testing.T) {
	dsql := func(change map[string]string) (config.Settings, error) {
		change["PERIGEE_DATABASE_AUTH"] = "dsql"
		return config.LoadFunction(function(change))
	}
	for given, want := range map[string]int{"": 900 << 10, "900KiB": 900 << 10, "64KiB": 64 << 10} {
		got, err := dsql(map[string]string{"PERIGEE_MAX_PAYLOAD_BYTES": given, "PERIGEE_MAX_JOIN_BYTES": given})
		if err != nil || got.Engine.MaxPayloadBytes != want || got.Engine.MaxJoinBytes != want {
			t.Errorf("%q: got %d and %d, %v; want %d", given, got.Engine.MaxPayloadBytes, got.Engine.MaxJoinBytes, err, want)
		}
	}
	_, err := dsql(map[string]string{"PERIGEE_MAX_PAYLOAD_BYTES": "1MiB", "PERIGEE_MAX_JOIN_BYTES": "0"})
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		"PERIGEE_MAX_PAYLOAD_BYTES: expected at most 900KiB, which is what Aurora DSQL stores in one value and the default there, got 1048576 bytes",
		"PERIGEE_MAX_JOIN_BYTES: expected at most 900KiB, which is what Aurora DSQL stores in one value and the default there, got no limit",
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, err := config.LoadFunction(function(map[string]string{"PERIGEE_MAX_JOIN_BYTES": "64MiB"}))
	if err != nil || got.Engine.MaxPayloadBytes != 1<<20 || got.Engine.MaxJoinBytes != 64<<20 {
		t.Errorf("another database: got %d and %d, %v", got.Engine.MaxPayloadBytes, got.Engine.MaxJoinBytes, err)
	}
}

func TestLoadFunction_TellsAllFaultsWithTheirPlaces(t *testing.T) {
	_, err := config.LoadFunction(from(map[string]string{
		"PERIGEE_SESSION_TIMEOUT": "5", "PERIGEE_DATABASE_SECRET": "db", "PERIGEE_DATABASE_AUTH": "iam",
		"PERIGEE_TICK_MODE": "on-demand", "PERIGEE_WAKE_TARGET": "tick", "PERIGEE_AUTH": "iam", "PERIGEE_DATABASE_APP_USER": "app;",
	}))
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{
		`PERIGEE_SESSION_TIMEOUT: duration "5" has a number without a unit; write it like 500ms, 30s, 1h30m, 1.5h, 7d or P1DT2H`,
		`PERIGEE_DATABASE: expected postgres://user@host:5432/database, got nothing`,
		`PERIGEE_DATABASE_AUTH is iam and PERIGEE_DATABASE_SECRET is "db": the one needs the other`,
		`AWS_REGION: expected a region such as us-east-1, got nothing; Lambda sets it`,
		`PERIGEE_DATABASE_APP_USER: expected a name of a-z, 0-9 and _, got "app;"`,
		`PERIGEE_AUTH_ROLES: with PERIGEE_AUTH iam it gives roles to principals, as ARN=ROLE,ARN=ROLE; got nothing, so that nobody may call`,
		`PERIGEE_WAKE_GROUP: tick mode on-demand needs a schedule group, got nothing`,
		`PERIGEE_WAKE_TARGET: tick mode on-demand needs the ARN of the tick function, got "tick"`,
		`PERIGEE_WAKE_ROLE: tick mode on-demand needs the ARN of a role for EventBridge Scheduler, got ""`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadFunction_EachVariableIsChecked(t *testing.T) {
	for variable, texts := range map[string][]string{
		"PERIGEE_DATABASE":             {"perigee.db", "mysql://h/d", "postgres:///d", "postgres://u:p%zz@h/d", "postgres://u:secret@h:port/d"},
		"PERIGEE_DATABASE_MODE":        {"session"},
		"PERIGEE_DATABASE_CONNECTIONS": {"0", "many"},
		"PERIGEE_DATABASE_AUTH":        {"yes", "secret"},
		"PERIGEE_AUTH":                 {"basic", "iam"},
		"PERIGEE_AUTH_ROLES":           {"admin", "=admin", "group=boss"},
		"PERIGEE_SESSION_TIMEOUT":      {"0s", "soon"},
		"PERIGEE_HEARTBEAT_INTERVAL":   {"31s"},
		"PERIGEE_MAX_PAYLOAD_BYTES":    {"1MB"},
		"PERIGEE_TICK_MODE":            {"hourly", "on-demand"},
		"PERIGEE_LOG_LEVEL":            {"loud"},
		"PERIGEE_LOG_FORMAT":           {"xml"},
	} {
		for _, text := range texts {
			_, err := config.LoadFunction(function(map[string]string{variable: text}))
			if err == nil {
				t.Errorf("%s=%s: no error", variable, text)
				continue
			}
			if strings.Contains(err.Error(), "u:secret") {
				t.Errorf("%s: the fault shows a password: %v", variable, err)
			}
		}
	}
}

func TestLoadFunction_ATokenOfIAMGoesToAVerifiedServerOnly(t *testing.T) {
	for database, want := range map[string]string{
		"postgres://perigee@db.internal/perigee?sslmode=require": "sslmode is require",
		"postgres://db.internal/perigee":                         "needs a user",
		"postgres://perigee@db.internal/perigee":                 "",
	} {
		_, err := config.LoadFunction(function(map[string]string{"PERIGEE_DATABASE_AUTH": "iam", "PERIGEE_DATABASE": database}))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", database, err, want)
		}
	}
}
