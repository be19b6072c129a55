package cloud_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"perigee/infra/cloud"
	"perigee/infra/cloud/moto"
)

func TestInvokeAsync_HandsThePayloadToTheFunction(t *testing.T) {
	endpoint := moto.Start(t)
	send(t, endpoint, "", "/moto-api/config", "application/json", `{"lambda": {"use_docker": false}}`)
	newFunction(t, endpoint, "worker")
	c := cloud.New("us-east-1", role(endpoint))
	if err := c.InvokeAsync(t.Context(), "worker", []byte(`{"token":"t"}`)); err != nil {
		t.Errorf("by name: %v", err)
	}
	if err := c.InvokeAsync(t.Context(), "arn:aws:lambda:us-east-1:123456789012:function:worker", []byte(`{}`)); err != nil {
		t.Errorf("by ARN: %v", err)
	}
	if err := cloud.New("us-east-1", role("http://127.0.0.1:1")).InvokeAsync(t.Context(), "worker", nil); err == nil {
		t.Error("nobody listens, and there is no error")
	}
}

// moto takes every name. Lambda answers so:
func TestInvokeAsync_ARefusalIsTold(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/2015-03-31/functions/nobody/invocations" || r.Header.Get("X-Amz-Invocation-Type") != "Event" {
			t.Errorf("called %s as %q", r.URL.Path, r.Header.Get("X-Amz-Invocation-Type"))
		}
		w.Header().Set("X-Amzn-Errortype", "ResourceNotFoundException")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"Message":"Function not found"}`)
	}))
	defer refusing.Close()
	err := cloud.New("us-east-1", role(refusing.URL)).InvokeAsync(t.Context(), "nobody", []byte(`{}`))
	if want := `invoke nobody: 404 Not Found: ResourceNotFoundException {"Message":"Function not found"}`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var known *cloud.InvokeError
	if !errors.As(err, &known) || !known.NotRun() {
		t.Errorf("got %#v, want an error that says that the function does not run", err)
	}
}

// newFunction makes a Lambda function that does nothing.
func newFunction(t *testing.T, endpoint, name string) {
	t.Helper()
	send(t, endpoint, "iam", "/", "application/x-www-form-urlencoded", url.Values{
		"Action": {"CreateRole"}, "Version": {"2010-05-08"}, "RoleName": {"worker"}, "AssumeRolePolicyDocument": {`{"Version":"2012-10-17","Statement":[]}`},
	}.Encode())
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	if _, err := z.Create("bootstrap"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{
		"FunctionName": name, "Runtime": "provided.al2023", "Handler": "bootstrap", "Role": "arn:aws:iam::123456789012:role/worker",
		"Code": map[string][]byte{"ZipFile": code.Bytes()},
	})
	if err != nil {
		t.Fatal(err)
	}
	send(t, endpoint, "lambda", "/2015-03-31/functions", "application/json", string(body))
}

// send makes a call of a service, which moto knows by the signature's scope.
func send(t *testing.T, endpoint, service, path, contentType, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	if service != "" {
		req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode > 299 {
		t.Fatalf("%s%s: %s %s", service, path, resp.Status, said)
	}
}
