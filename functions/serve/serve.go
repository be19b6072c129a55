package serve

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"perigee/functions/httpapi"
	"perigee/functions/lambdahttp"
	"perigee/infra/config"
	"perigee/infra/instance"
)

// Function answers the calls of an HTTP API with the engine of an instance.
func Function(i *instance.Instance) lambdahttp.Function {
	api := httpapi.New(httpapi.Options{
		Engine:          i.Engine,
		MaxPayloadBytes: i.Settings.Engine.MaxPayloadBytes,
		Before:          i.Ready,
		Ready:           func(ctx context.Context) error { return firstError(i.Ready(ctx), i.Store.Ping(ctx)) },
		Logger:          i.Log,
	})
	answer := lambdahttp.Handler(identified(api, &i.Settings), i.Log)
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		defer i.After(ctx)
		return answer(ctx, event)
	}
}

// identified hands on what an authorizer in front has found out.
func identified(next http.Handler, s *config.Settings) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if event, ok := lambdahttp.Event(r.Context()); ok {
			switch who, err := identity(s, event.RequestContext.Authorizer); {
			case err != nil:
				r = r.WithContext(httpapi.WithRefusal(r.Context(), err))
			case who != nil:
				r = r.WithContext(httpapi.WithIdentity(r.Context(), *who))
			}
		}
		next.ServeHTTP(w, r)
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
