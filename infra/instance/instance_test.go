package instance_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"perigee/engine"
	"perigee/engine/definition"
	"perigee/infra/cloud/moto"
	"perigee/infra/instance"
	"perigee/infra/push"
	"perigee/store/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// putSecret makes a secret in a stand-in of Secrets Manager.
func putSecret(t *testing.T, endpoint, name, text string) {
	t.Helper()
	client := secretsmanager.New(secretsmanager.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
		}),
	})
	if _, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: &text}); err != nil {
		t.Fatal(err)
	}
}

// As the tick function does, with the secrets of one secret of Secrets Manager.
func TestInstance_PushesWithTheSecretsOfSecretsManager(t *testing.T) {
	endpoint := moto.Start(t)
	putSecret(t, endpoint, "calls", `{"MAILER": "shared between two"}`)
	var body []byte
	var timestamp, signature string
	worker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body) // a part of it has another signature
		timestamp, signature = r.Header.Get(push.TimestampHeader), r.Header.Get(push.SignatureHeader)
	}))
	defer worker.Close()
	environment := map[string]string{
		"PERIGEE_DATABASE": pgtest.URL(t), "PERIGEE_HTTP_ALLOW": "127.0.0.1", "PERIGEE_CALL_SECRETS": "calls",
		"PERIGEE_ROUTES": `{"mail.*": {"url": "` + worker.URL + `", "secret": "MAILER"}}`,
		"AWS_REGION":     "us-east-1", "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
	}
	var log bytes.Buffer
	i, err := instance.New(t.Context(), func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, &log)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Store.Close()
	if _, err := i.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const workflow = "name: w\nversion: \"1.0.0\"\ntasks: { mail.send: { version: \"1.0.0\" } }\nsteps: [{ id: a, task: mail.send }]\n"
	if _, err := i.Engine.RegisterDefinition(t.Context(), []byte(workflow), definition.YAML); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Engine.Start(t.Context(), engine.StartRequest{Workflow: "w", ExecutionID: "e", Input: "{}"}); err != nil {
		t.Fatal(err)
	}
	tasks, err := i.Engine.ClaimBuiltins(t.Context(), 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks, %v\n%s", len(tasks), err, log.String())
	}
	i.Engine.RunBuiltin(t.Context(), tasks[0])
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		t.Fatalf("the worker was not called, or without a moment: %v\n%s", err, log.String())
	}
	if _, want := push.Sign("shared between two", time.Unix(seconds, 0), body); signature != want {
		t.Errorf("the signature is %s, want %s", signature, want)
	}
	if bytes.Contains(log.Bytes(), []byte("shared")) {
		t.Error("the log holds the secret")
	}
}
