// Command migrate is the Lambda function that brings the database's schema to
// this release, makes the other functions' database user and stores the first
// admin token. CloudFormation calls it as a custom resource, before the other
// functions of a release are there; by hand it is called with any event.
package main

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-lambda-go/lambda"

	"perigee/infra/instance"
)

// resource is the physical id: it never changes, so that nothing is replaced.
const resource = "perigee-schema"

func main() {
	i := instance.Start()
	asResource := cfn.LambdaWrap(func(ctx context.Context, e cfn.Event) (string, map[string]any, error) {
		if e.RequestType == cfn.RequestDelete {
			return resource, nil, nil // data is never deleted from here
		}
		_, err := i.Migrate(ctx)
		return resource, nil, err
	})
	lambda.Start(func(ctx context.Context, event json.RawMessage) (any, error) {
		var e cfn.Event
		if json.Unmarshal(event, &e) == nil && e.RequestType != "" {
			return asResource(ctx, e)
		}
		return i.Migrate(ctx)
	})
}
