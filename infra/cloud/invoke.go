package cloud

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// InvokeError says why a function was not invoked, as far as that is known.
type InvokeError struct {
	Function string
	Cause    error
	refused  bool
}

// Error names the function and what went wrong.
func (e *InvokeError) Error() string { return "invoke " + e.Function + ": " + e.Cause.Error() }

// Unwrap gives the cause.
func (e *InvokeError) Unwrap() error { return e.Cause }

// NotRun reports that the function certainly does not run for this call: nothing
// was sent, or Lambda refused it with a 4xx. Whatever else goes wrong may have
// happened after Lambda took it.
func (e *InvokeError) NotRun() bool { return e.refused }

// InvokeAsync hands a payload to a Lambda function, by name or ARN, and does not
// wait for its end. The error is an *InvokeError. It is one signed request: the
// SDK's client for Lambda, with all that Lambda can do, would be an eighth of a
// function's binary.
func (c *Cloud) InvokeAsync(ctx context.Context, function string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	req, err := c.invocation(ctx, function, payload)
	if err != nil {
		return &InvokeError{Function: function, Cause: err, refused: true}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &InvokeError{Function: function, Cause: err, refused: !sent.Load()}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusAccepted {
		return nil // that is all there is to say; it comes without a body
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // a part of it is better than nothing
	return &InvokeError{
		Function: function, refused: resp.StatusCode >= 400 && resp.StatusCode < 500,
		Cause: fmt.Errorf("%s: %s %s", resp.Status, resp.Header.Get("X-Amzn-Errortype"), bytes.TrimSpace(said)),
	}
}

// invocation is the signed request.
func (c *Cloud) invocation(ctx context.Context, function string, payload []byte) (*http.Request, error) {
	base := "https://lambda." + c.config.Region + ".amazonaws.com"
	if c.config.BaseEndpoint != nil {
		base = *c.config.BaseEndpoint
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		base+"/2015-03-31/functions/"+url.PathEscape(function)+"/invocations", bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Amz-Invocation-Type", "Event")
	credentials, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(payload)
	return req, v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "lambda", c.config.Region, time.Now())
}
