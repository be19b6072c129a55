package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/feature/rds/auth"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// callTime bounds a call with its retries. It is below the shortest time limit
// of a function, so that a service that is away is told as that.
const callTime = 5 * time.Second

// Cloud is one account and region. It is safe for concurrent use.
type Cloud struct {
	config    aws.Config
	secrets   func() *secretsmanager.Client
	schedules func() *scheduler.Client
}

// Environment tells the value of an environment variable.
type Environment = func(name string) (value string, set bool)

// New makes a Cloud without calling anything.
func New(region string, environment Environment) *Cloud {
	c := &Cloud{config: aws.Config{
		Region:      region,
		Credentials: environmentCredentials{environment},
		Retryer:     func() aws.Retryer { return retry.NewStandard() },
	}}
	if endpoint, ok := environment("AWS_ENDPOINT_URL"); ok && endpoint != "" {
		c.config.BaseEndpoint = &endpoint
	}
	c.secrets = sync.OnceValue(func() *secretsmanager.Client { return secretsmanager.NewFromConfig(c.config) })
	c.schedules = sync.OnceValue(func() *scheduler.Client { return scheduler.NewFromConfig(c.config) })
	return c
}

// environmentCredentials are those of the function's role. They are read at
// each use: a process may be given others.
type environmentCredentials struct{ environment Environment }

// Retrieve reads the variables that Lambda sets.
func (e environmentCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	id, _ := e.environment("AWS_ACCESS_KEY_ID")
	key, _ := e.environment("AWS_SECRET_ACCESS_KEY")
	token, _ := e.environment("AWS_SESSION_TOKEN")
	if id == "" || key == "" {
		return aws.Credentials{}, errors.New("there are no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
	}
	return aws.Credentials{AccessKeyID: id, SecretAccessKey: key, SessionToken: token, Source: "environment"}, nil
}

// Secret reads the text of a secret, by name or ARN.
func (c *Cloud) Secret(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := c.secrets().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
	if err != nil {
		return "", err
	}
	if out.SecretString == nil {
		return "", errors.New("the secret is binary; expected a text")
	}
	return *out.SecretString, nil
}

// DatabaseToken makes a password for a user of the database at host:port. It
// is signed here; nothing is called.
func (c *Cloud) DatabaseToken(ctx context.Context, endpoint, user string) (string, error) {
	token, err := auth.BuildAuthToken(ctx, endpoint, c.config.Region, user, c.config.Credentials)
	if err != nil {
		return "", fmt.Errorf("sign for %s: %w", endpoint, err)
	}
	return token, nil
}

// DSQLToken is DatabaseToken for Aurora DSQL, which tells its owner from other
// users by the action that is signed.
func (c *Cloud) DSQLToken(ctx context.Context, endpoint, user string) (string, error) {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return "", err
	}
	action := "DbConnect"
	if user == "admin" {
		action = "DbConnectAdmin"
	}
	query := url.Values{"Action": {action}, "X-Amz-Expires": {"900"}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/?"+query.Encode(), nil)
	if err != nil {
		return "", err
	}
	credentials, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return "", fmt.Errorf("sign for %s: %w", endpoint, err)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, credentials, request, emptyHash, "dsql", c.config.Region, time.Now().UTC())
	return strings.TrimPrefix(signed, "https://"), err
}

// emptyHash is the SHA-256 of no body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
