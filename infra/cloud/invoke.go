package cloud

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// InvokeAsync hands a payload to a Lambda function, by name or ARN, and does not
// wait for its end. It is one signed request: the SDK's client for Lambda, with
// all that Lambda can do, would be an eighth of a function's binary.
func (c *Cloud) InvokeAsync(ctx context.Context, function string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	base := "https://lambda." + c.config.Region + ".amazonaws.com"
	if c.config.BaseEndpoint != nil {
		base = *c.config.BaseEndpoint
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		base+"/2015-03-31/functions/"+url.PathEscape(function)+"/invocations", bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Amz-Invocation-Type", "Event")
	credentials, err := c.config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	sum := sha256.Sum256(payload)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), "lambda", c.config.Region, time.Now()); err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("invoke %s: %w", function, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("invoke %s: %s: %s %s", function, resp.Status, resp.Header.Get("X-Amzn-Errortype"), bytes.TrimSpace(said))
	}
	return err
}
