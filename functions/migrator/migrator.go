package migrator

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/cfn"

	"perigee/infra/instance"
)

// resource is the physical id: it never changes, so that nothing is replaced.
const resource = "perigee-schema"

// event is what of an event tells who calls.
type event struct {
	RequestType cfn.RequestType // of CloudFormation
	Token       *tokenCommand   `json:"token"`
}

// Function answers with an instance, or with why there is none.
func Function(i *instance.Instance, start error) func(context.Context, json.RawMessage) (any, error) {
	asResource := cfn.LambdaWrap(func(ctx context.Context, e cfn.Event) (string, map[string]any, error) {
		if e.RequestType == cfn.RequestDelete {
			return resource, nil, nil // data is never deleted from here
		}
		_, err := migrate(ctx, i, start)
		return resource, nil, err
	})
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var e event
		err := json.Unmarshal(raw, &e)
		switch {
		case err == nil && e.RequestType != "":
			var call cfn.Event
			if err := json.Unmarshal(raw, &call); err != nil {
				return nil, err
			}
			return asResource(ctx, call)
		case start != nil:
			return nil, start
		case isTokenCommand(raw):
			answer, err := e.Token.run(ctx, i.Engine, err)
			return answer, i.Failed(ctx, err)
		}
		return migrate(ctx, i, start)
	}
}

func migrate(ctx context.Context, i *instance.Instance, start error) (instance.Migrated, error) {
	if start != nil {
		return instance.Migrated{}, start
	}
	return i.Migrate(ctx)
}
