package lambdahttp

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
)

// Limits that are the platform's.
const (
	// integration is how long API Gateway waits for a function: 30 s, of which the
	// way there and back takes a part.
	integration = 29 * time.Second
	// margin is what an answer needs to leave the function before Lambda ends it.
	margin = time.Second
	// answerBytes is how long the JSON of an answer may be: Lambda takes 6 MiB.
	answerBytes = 6<<20 - 64<<10
)

// Function is a handler as lambda.Start takes it.
type Function func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// Handler makes a function of h. It never returns an error, which API Gateway
// would answer with a bare 500: what goes wrong becomes an answer in the API's
// error shape, and a line of log. The context of a request ends while there is
// still time to say so.
func Handler(h http.Handler, log *slog.Logger) Function {
	proxy := httpadapter.NewV2(repaired{h})
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (answer events.APIGatewayV2HTTPResponse, _ error) {
		defer func() {
			if p := recover(); p != nil {
				log.ErrorContext(ctx, "the handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				answer = refuse(http.StatusInternalServerError, "INTERNAL", "something went wrong on the server's side; its log has the cause")
			}
		}()
		ctx, cancel := context.WithTimeout(ctx, budget(ctx))
		defer cancel()
		if event.IsBase64Encoded {
			if _, err := base64.StdEncoding.DecodeString(event.Body); err != nil {
				return refuse(http.StatusBadRequest, "INVALID_REQUEST", "the body is marked as base64 and is none"), nil
			}
		}
		answer, err := proxy.ProxyWithContext(withEvent(ctx, &event), simplified(event))
		if err != nil {
			log.ErrorContext(ctx, "the event could not be made a request", "error", err)
			return refuse(http.StatusInternalServerError, "INTERNAL", "the server could not read the call that its gateway made; its log has the cause"), nil
		}
		return fitting(ctx, answer, log), nil
	}
}

// budget is how long a request may take.
func budget(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return integration
	}
	return min(integration, time.Until(end)-margin)
}

// fitting keeps an answer within what Lambda takes. Quotes and backslashes
// double in a JSON string; as base64 the same text grows by a third only.
func fitting(ctx context.Context, answer events.APIGatewayV2HTTPResponse, log *slog.Logger) events.APIGatewayV2HTTPResponse {
	if answer.IsBase64Encoded || escapedLen(answer.Body) <= answerBytes {
		if len(answer.Body) <= answerBytes {
			return answer
		}
	} else if base64.StdEncoding.EncodedLen(len(answer.Body)) <= answerBytes {
		answer.Body = base64.StdEncoding.EncodeToString([]byte(answer.Body))
		answer.IsBase64Encoded = true
		return answer
	}
	log.ErrorContext(ctx, "the answer is larger than Lambda takes", "bytes", len(answer.Body), "limit", answerBytes)
	return refuse(http.StatusInternalServerError, "INTERNAL", "the answer is larger than the 6 MiB that a function may give; ask for less with limit")
}

// escapedLen is a bound of the length of s as a JSON string, whatever encodes it.
func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n++
		case c < ' ', c == '<', c == '>', c == '&', c == 0xE2: // U+2028 begins so
			n += 5
		}
	}
	return n
}

// refuse is an answer in the API's error shape. The texts are constants that
// need no escapes.
func refuse(status int, code, message string) events.APIGatewayV2HTTPResponse {
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status,
		Headers:    map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"},
		Body:       `{"code":"` + code + `","message":"` + message + `"}`,
	}
}
