// Command migrate is the Lambda function that brings the database's schema to
// this release, makes the other functions' database user and stores the first
// admin token. CloudFormation calls it as a custom resource, before the other
// functions of a release are there; by hand it is called with any event, or
// with one that makes, lists or deletes tokens.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"perigee/functions/migrator"
	"perigee/infra/instance"
)

func main() {
	lambda.Start(migrator.Function(instance.New(context.Background(), os.LookupEnv, os.Stdout)))
}
