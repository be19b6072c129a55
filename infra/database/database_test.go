package database_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/jackc/pgx/v5"

	"perigee/infra/cloud"
	"perigee/infra/cloud/moto"
	"perigee/infra/config"
	"perigee/infra/database"
	"perigee/store/postgres/pgtest"
)

// A password is rotated while a function keeps its connection and the old
// password: the next connection takes the new one, and no call fails.
func TestOpen_FollowsARotatedSecret(t *testing.T) {
	endpoint := moto.Start(t)
	secrets := secretsmanager.New(secretsmanager.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
		}),
	})
	admin := pgtest.URL(t)
	user := newUser(t, admin)
	setPassword := func(password string) string {
		run(t, admin, fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, user, password))
		text, err := json.Marshal(map[string]string{"username": user, "password": password, "engine": "postgres"})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := setPassword("first")
	if _, err := secrets.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("db"), SecretString: &first}); err != nil {
		t.Fatal(err)
	}
	st := open(t, admin, endpoint, map[string]string{"PERIGEE_DATABASE_AUTH": "secret", "PERIGEE_DATABASE_SECRET": "db"})
	if err := st.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := setPassword("second")
	if _, err := secrets.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: aws.String("db"), SecretString: &second}); err != nil {
		t.Fatal(err)
	}
	run(t, admin, fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '%s'`, user))
	if err := st.Ping(t.Context()); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
}

func TestOpen_ASecretThatCannotBeUsedIsNamed(t *testing.T) {
	endpoint := moto.Start(t)
	st := open(t, pgtest.URL(t), endpoint, map[string]string{"PERIGEE_DATABASE_AUTH": "secret", "PERIGEE_DATABASE_SECRET": "nowhere"})
	err := st.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "secret nowhere") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestOpen_AFileOfAuthoritiesIsLookedAtAtOnce(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/nowhere.pem": "PERIGEE_DATABASE_CA: open /nowhere.pem", empty: "holds no certificate in PEM"} {
		s, err := config.LoadFunction(environment("postgres://u@db.internal/d", "", map[string]string{"PERIGEE_DATABASE_CA": path}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := database.Open(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The user of the functions reads and writes rows, and changes no schema.
func TestMakeUser_MayReadAndWriteRowsOnly(t *testing.T) {
	admin := pgtest.URL(t)
	run(t, admin, `CREATE TABLE things (n int)`)
	app := strings.ToLower("app_" + randomName(admin))
	t.Cleanup(func() {
		run(t, admin, `DROP OWNED BY `+app)
		run(t, admin, `DROP ROLE `+app)
	})
	s, err := config.LoadFunction(environment(admin, "", map[string]string{"PERIGEE_DATABASE_APP_USER": app}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := database.MakeUser(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
	}
	run(t, admin, `ALTER ROLE `+app+` PASSWORD 'app'`)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(app, "app")
	run(t, u.String(), `INSERT INTO things VALUES (1)`)
	conn := connect(t, u.String())
	for _, sql := range []string{`DROP TABLE things`, `TRUNCATE things`, `ALTER TABLE things ADD COLUMN m int`} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: it was allowed", sql)
		}
	}
	var idle string
	if err := conn.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&idle); err != nil || idle != "5s" {
		t.Errorf("idle_in_transaction_session_timeout is %q, %v", idle, err)
	}
}

// environment is a function's, with a database.
func environment(where, endpoint string, more map[string]string) config.Source {
	m := map[string]string{
		"PERIGEE_DATABASE": where, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": endpoint,
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
	}
	for name, text := range more {
		m[name] = text
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

type pinger interface{ Ping(context.Context) error }

func open(t *testing.T, where, endpoint string, more map[string]string) pinger {
	t.Helper()
	env := environment(where, endpoint, more)
	s, err := config.LoadFunction(env)
	if err != nil {
		t.Fatal(err)
	}
	st, err := database.Open(t.Context(), s, cloud.New("us-east-1", env))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// newUser makes a role of the test's own that may log in.
func newUser(t *testing.T, admin string) string {
	t.Helper()
	name := "user_" + randomName(admin)
	run(t, admin, `CREATE ROLE `+name+` LOGIN`)
	t.Cleanup(func() { run(t, admin, `DROP ROLE `+name) })
	return name
}

// randomName is the random part of the test database's name.
func randomName(where string) string { return where[strings.LastIndexByte(where, '_')+1:][:16] }

func connect(t *testing.T, where string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, where, sql string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
