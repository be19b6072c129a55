// Command migrate is the Lambda function that brings the database's schema to
// this release and stores the first admin token. It is called by hand or by a
// deployment, before the other functions of a release are.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"perigee/infra/instance"
)

func main() {
	lambda.Start(instance.Start().Migrate)
}
