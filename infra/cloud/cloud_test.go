package cloud_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"perigee/infra/cloud"
	"perigee/infra/cloud/moto"
)

// role is the environment of a function's role.
func role(endpoint string) cloud.Environment {
	m := map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalr", "AWS_SESSION_TOKEN": "session", "AWS_ENDPOINT_URL": endpoint,
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// awsConfig is the configuration of a test's own clients.
func awsConfig(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalr"}, nil
		}),
	}
}

func TestCloud_SecretsAndSchedules(t *testing.T) {
	endpoint := moto.Start(t)
	c := cloud.New("us-east-1", role(endpoint))
	ctx := t.Context()

	t.Run("a secret is what it was last set to", func(t *testing.T) {
		secrets := secretsmanager.NewFromConfig(awsConfig(endpoint))
		if _, err := secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String("db"), SecretString: aws.String("one")}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Secret(ctx, "db"); err != nil || got != "one" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: aws.String("db"), SecretString: aws.String("two")}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Secret(ctx, "db"); err != nil || got != "two" {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := c.Secret(ctx, "none"); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
			t.Errorf("a secret that is not there: %v", err)
		}
	})

	t.Run("there is one wake-up, the last that was set", func(t *testing.T) {
		schedules := scheduler.NewFromConfig(awsConfig(endpoint))
		if _, err := schedules.CreateScheduleGroup(ctx, &scheduler.CreateScheduleGroupInput{Name: aws.String("group")}); err != nil {
			t.Fatal(err)
		}
		s := cloud.Schedule{Cloud: c, Group: "group", Target: "arn:aws:lambda:us-east-1:123456789012:function:tick", Role: "arn:aws:iam::123456789012:role/wake"}
		moment := time.Date(2031, 5, 6, 7, 8, 9, 1, time.FixedZone("", 3600))
		for _, at := range []time.Time{moment.Add(time.Hour), moment} {
			if err := s.Arm(ctx, at); err != nil {
				t.Fatal(err)
			}
		}
		got, err := schedules.GetSchedule(ctx, &scheduler.GetScheduleInput{GroupName: aws.String("group"), Name: aws.String("wake")})
		if err != nil {
			t.Fatal(err)
		}
		want := []any{"at(2031-05-06T06:08:10)", s.Target, s.Role, int32(0)} // rounded up, in UTC
		have := []any{*got.ScheduleExpression, *got.Target.Arn, *got.Target.RoleArn, *got.Target.RetryPolicy.MaximumRetryAttempts}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// What has passed by the time that it is read would never come.
		before := time.Now()
		if err := s.Arm(ctx, before.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got, err = schedules.GetSchedule(ctx, &scheduler.GetScheduleInput{GroupName: aws.String("group"), Name: aws.String("wake")}); err != nil {
			t.Fatal(err)
		}
		soon, err := time.Parse("at(2006-01-02T15:04:05)", *got.ScheduleExpression)
		if err != nil || soon.Sub(before) < 2*time.Second {
			t.Errorf("a moment that has passed is set to %s, %v", *got.ScheduleExpression, err)
		}
	})
}

func TestDatabaseToken_IsASignedRequestToConnect(t *testing.T) {
	c := cloud.New("eu-central-1", role(""))
	token, err := c.DatabaseToken(t.Context(), "db.eu-central-1.rds.amazonaws.com:5432", "perigee_app")
	if err != nil {
		t.Fatal(err)
	}
	checkToken(t, token, "db.eu-central-1.rds.amazonaws.com:5432", "rds-db", map[string]string{"Action": "connect", "DBUser": "perigee_app"})
}

func TestDSQLToken_NamesTheActionThatTheUserNeeds(t *testing.T) {
	c := cloud.New("eu-central-1", role(""))
	for user, action := range map[string]string{"admin": "DbConnectAdmin", "perigee_app": "DbConnect"} {
		token, err := c.DSQLToken(t.Context(), "x.dsql.eu-central-1.on.aws:5432", user)
		if err != nil {
			t.Fatal(err)
		}
		checkToken(t, token, "x.dsql.eu-central-1.on.aws", "dsql", map[string]string{"Action": action})
	}
}

// checkToken holds a token to the shape that servers take: a presigned request
// without its scheme, for 15 minutes.
func checkToken(t *testing.T, token, host, service string, query map[string]string) {
	t.Helper()
	u, err := url.Parse("https://" + token)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range query {
		if got := q.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	scope := strings.SplitN(q.Get("X-Amz-Credential"), "/", 3)
	if u.Host != host || q.Get("X-Amz-Expires") != "900" || q.Get("X-Amz-Security-Token") != "session" || len(q.Get("X-Amz-Signature")) != 64 ||
		len(scope) != 3 || scope[0] != "AKIDEXAMPLE" || scope[2] != "eu-central-1/"+service+"/aws4_request" {
		t.Errorf("the token is %s", token)
	}
}

func TestCloud_WithoutCredentialsItSaysWhichAreMissing(t *testing.T) {
	c := cloud.New("us-east-1", func(string) (string, bool) { return "", false })
	_, err := c.DatabaseToken(t.Context(), "db.us-east-1.rds.amazonaws.com:5432", "u")
	if err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}
