// Command worker is the Lambda function of the worker protocol: registration, polls, results and heartbeats.
// It is called by an HTTP API with payload format 2.0.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"perigee/functions/serve"
	"perigee/infra/instance"
)

func main() {
	lambda.Start(serve.Function(instance.Start()))
}
