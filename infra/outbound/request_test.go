package outbound_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
	"perigee/infra/outbound"
)

const secret = `s3cr3t "token"/1`

// secrets hold API_TOKEN; FAR_AWAY cannot be looked up now.
func secrets(_ context.Context, name string) (string, error) {
	switch name {
	case "API_TOKEN":
		return secret, nil
	case "BROKEN":
		return "line\nbreak", nil
	case "FAR_AWAY":
		return "", errors.New("secret FAR_AWAY: the vault does not answer")
	}
	return "", fmt.Errorf("secret %s: %w", name, outbound.ErrNoSecret)
}

func caller(t *testing.T, o outbound.Options) *outbound.Client {
	t.Helper()
	o.Allow, o.Secrets = loopback, secrets
	return newClient(t, o)
}

// request runs http.request with an input of which URL stands for the server's.
func request(t *testing.T, c *outbound.Client, server, input string) (exactjson.Value, *engine.Failure) {
	t.Helper()
	v, err := exactjson.Parse([]byte(strings.ReplaceAll(input, "URL", server)))
	if err != nil {
		t.Fatal(err)
	}
	return c.HTTPRequest(t.Context(), v)
}

// answer serves one answer.
func answer(t *testing.T, status int, contentType, body string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

func TestHTTPRequest_SendsWhatTheInputSays(t *testing.T) {
	type seen struct{ Method, Path, ContentType, Extra, Agent, Body string }
	for input, want := range map[string]seen{
		`{"url":"URL/a?b=1#c"}`: {Method: "GET", Path: "/a?b=1", Agent: "perigee"},
		`{"url":"URL/","method":"post","body":{"n":12345678901234567890.50}}`: {
			Method: "POST", Path: "/", ContentType: "application/json", Agent: "perigee", Body: `{"n":12345678901234567890.50}`},
		`{"url":"URL/","method":"PUT","body":"as it is"}`: {
			Method: "PUT", Path: "/", ContentType: "text/plain; charset=utf-8", Agent: "perigee", Body: "as it is"},
		`{"url":"URL/","method":"POST","body":"<a/>","headers":{"content-type":"application/xml","x-extra":7,"user-agent":"shop"}}`: {
			Method: "POST", Path: "/", ContentType: "application/xml", Extra: "7", Agent: "shop", Body: "<a/>"},
		`{"url":"URL/","method":"DELETE","body":null,"headers":null,"timeout":"5s","retry_statuses":[]}`: {
			Method: "DELETE", Path: "/", Agent: "perigee"},
		`{"url":"URL/","headers":{"x-extra":{"secret":"API_TOKEN","prefix":"Bearer "}}}`: {
			Method: "GET", Path: "/", Extra: "Bearer " + secret, Agent: "perigee"},
	} {
		var got seen
		server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			h := r.Header
			got = seen{r.Method, r.URL.RequestURI(), h.Get("Content-Type"), h.Get("X-Extra"), h.Get("User-Agent"), string(body)}
		})
		if _, fail := request(t, caller(t, outbound.Options{}), server, input); fail != nil {
			t.Errorf("%s: %v", input, fail.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", input, diff)
		}
	}
}

func TestHTTPRequest_GivesTheAnswer(t *testing.T) {
	binary := "\xff\xfe\x00"
	for _, tt := range []struct {
		status            int
		contentType, body string
		want              string // of the body
	}{
		{200, "application/json", ` { "n": 18446744073709551615 } `, `{"n":18446744073709551615}`},
		{201, "application/problem+json; charset=utf-8", `[1.50]`, `[1.50]`},
		{200, "application/json", `{"a":1,`, `"{\"a\":1,"`},
		{404, "text/plain", "no", `"no"`},
		{204, "text/plain", "", `null`},
		{200, "application/octet-stream", binary, `{"base64":"` + base64.StdEncoding.EncodeToString([]byte(binary)) + `"}`},
	} {
		server := answer(t, tt.status, tt.contentType, tt.body)
		output, fail := request(t, caller(t, outbound.Options{}), server, `{"url":"URL"}`)
		if fail != nil {
			t.Errorf("%q: %s", tt.body, fail.Message)
			continue
		}
		if got := string(output.Get("body")); got != tt.want {
			t.Errorf("%q: body is %s, want %s", tt.body, got, tt.want)
		}
		if got := string(output.Get("status")); got != fmt.Sprint(tt.status) {
			t.Errorf("%q: status is %s", tt.body, got)
		}
		if got, _ := output.Get("headers").Get("content-type").Text(); got != tt.contentType {
			t.Errorf("%q: content-type is %q", tt.body, got)
		}
	}
}

func TestHTTPRequest_JoinsHeadersOfOneName(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header()["X-Many"] = []string{"one", "two"}
	})
	output, fail := request(t, caller(t, outbound.Options{}), server, `{"url":"URL"}`)
	if fail != nil {
		t.Fatal(fail.Message)
	}
	want := exactjson.Value(`{"status":200,"headers":{"content-length":"0","x-many":"one, two"},"body":null}`)
	if diff := cmp.Diff(want, output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHTTPRequest_RefusesWrongInputs(t *testing.T) {
	c := caller(t, outbound.Options{})
	for input, want := range map[string]string{
		`[]`:                                                      "expected an object, got array",
		`{}`:                                                      "url is missing",
		`{"url":7}`:                                               "url: expected an absolute http or https URL, such as https://api.example.com/charges",
		`{"url":"ftp://a/"}`:                                      "url: expected an absolute http or https URL, such as https://api.example.com/charges",
		`{"url":"/relative"}`:                                     "url: expected an absolute http or https URL, such as https://api.example.com/charges",
		`{"url":"http://u:p@a/"}`:                                 "url: it holds credentials, which the history would keep; use a header with { secret: NAME }",
		`{"url":"URL","method":"TRACE"}`:                          "method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
		`{"url":"URL","methods":"GET"}`:                           `unknown key "methods"; known: method, url, headers, body, timeout, retry_statuses`,
		`{"url":"URL","timeout":30}`:                              `timeout: expected text such as "30s", got number`,
		`{"url":"URL","timeout":"5m"}`:                            "timeout: expected more than 0 and at most 4m, got 5m",
		`{"url":"URL","timeout":"0s"}`:                            "timeout: expected more than 0 and at most 4m, got 0s",
		`{"url":"URL","headers":[]}`:                              "headers: expected an object, got array",
		`{"url":"URL","headers":{"":""}}`:                         `headers: "" is no name of a header`,
		`{"url":"URL","headers":{"a b":"c"}}`:                     `headers: "a b" is no name of a header`,
		`{"url":"URL","headers":{"host":"b"}}`:                    "headers: host is the connection's own and cannot be set",
		`{"url":"URL","headers":{"a":"b","A":"c"}}`:               "headers: A is there twice",
		`{"url":"URL","headers":{"a":"b\r\nc: d"}}`:               "headers: A holds a line break or another control character",
		`{"url":"URL","headers":{"a":true}}`:                      "headers: A: expected text or { secret: NAME }, got boolean",
		`{"url":"URL","headers":{"a":{"name":"API_TOKEN"}}}`:      "headers: A: expected { secret: NAME, prefix?: text }",
		`{"url":"URL","retry_statuses":503}`:                      "retry_statuses: expected a list such as [429, 503], got number",
		`{"url":"URL","retry_statuses":[1000]}`:                   "retry_statuses: expected numbers from 100 to 599",
		`{"url":"URL","retry_statuses":["503"]}`:                  "retry_statuses: expected numbers from 100 to 599",
		`{"url":"URL","headers":{"a":{"secret":"X","prefix":1}}}`: "headers: A: expected { secret: NAME, prefix?: text }",
	} {
		server := serve(t, called(t))
		_, fail := request(t, c, server, input)
		wantFail := &engine.Failure{TaskError: history.TaskError{Code: "INPUT_CONTRACT_VIOLATION", Message: "input of http.request: " + want}}
		if diff := cmp.Diff(wantFail, fail); diff != "" {
			t.Errorf("%s (-want +got):\n%s", input, diff)
		}
	}
}

func TestHTTPRequest_TellsWhichSecretIsMissing(t *testing.T) {
	c := caller(t, outbound.Options{})
	for name, want := range map[string]history.TaskError{
		"NONE":     {Code: "HTTP_ERROR", Message: "header X: secret NONE: there is no such secret"},
		"FAR_AWAY": {Code: "HTTP_ERROR", Message: "header X: secret FAR_AWAY: the vault does not answer", Retryable: true},
		"BROKEN":   {Code: "HTTP_ERROR", Message: "header X: the secret BROKEN holds a line break or another control character, which no header can carry"},
	} {
		_, fail := request(t, c, serve(t, called(t)), `{"url":"URL","headers":{"x":{"secret":"`+name+`"}}}`)
		if diff := cmp.Diff(&engine.Failure{TaskError: want}, fail); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEnvironment_FindsSecretsByTheirVariable(t *testing.T) {
	env := map[string]string{"PERIGEE_SECRET_A": "value", "PERIGEE_SECRET_EMPTY": ""}
	find := outbound.Environment(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if got, err := find(t.Context(), "A"); got != "value" || err != nil {
		t.Errorf("A: %q, %v", got, err)
	}
	for _, name := range []string{"EMPTY", "B"} {
		_, err := find(t.Context(), name)
		if !errors.Is(err, outbound.ErrNoSecret) || !strings.Contains(err.Error(), "PERIGEE_SECRET_"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHTTPRequest_RetriesByStatus(t *testing.T) {
	for _, tt := range []struct {
		status int
		input  string
		fails  bool
	}{
		{408, `{"url":"URL"}`, true},
		{429, `{"url":"URL"}`, true},
		{500, `{"url":"URL"}`, true},
		{501, `{"url":"URL"}`, false},
		{502, `{"url":"URL"}`, true},
		{503, `{"url":"URL"}`, true},
		{504, `{"url":"URL"}`, true},
		{503, `{"url":"URL","retry_statuses":[409]}`, false},
		{409, `{"url":"URL","retry_statuses":[409]}`, true},
		{500, `{"url":"URL","retry_statuses":[]}`, false},
		{400, `{"url":"URL"}`, false},
	} {
		server := answer(t, tt.status, "text/plain", "because")
		_, fail := request(t, caller(t, outbound.Options{}), server, tt.input)
		if !tt.fails {
			if fail != nil {
				t.Errorf("%d with %s: %s", tt.status, tt.input, fail.Message)
			}
			continue
		}
		want := &engine.Failure{TaskError: history.TaskError{
			Code: "HTTP_ERROR", Message: "GET " + server + " answered " + outbound.StatusText(tt.status), Retryable: true,
			Details: exactjson.Value(fmt.Sprintf(`{"status":%d,"body":"because"}`, tt.status)),
		}}
		if diff := cmp.Diff(want, fail); diff != "" {
			t.Errorf("%d with %s (-want +got):\n%s", tt.status, tt.input, diff)
		}
	}
}

func TestRetryAfter_IsTakenInBothForms(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"-1":                            0,
		"soon":                          0,
		"999999999":                     time.Hour,
		"Sun, 29 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 29 Nov 2026 11:00:00 GMT": 0,
		"Tue, 29 Nov 2033 12:00:00 GMT": time.Hour,
	} {
		got := outbound.RetryAfter(http.Header{"Retry-After": {text}}, now)
		if (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestHTTPRequest_HonoursRetryAfter(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, fail := request(t, caller(t, outbound.Options{}), server, `{"url":"URL"}`)
	if fail == nil || fail.RetryAfter == nil || *fail.RetryAfter != 7*time.Second {
		t.Errorf("got %+v", fail)
	}
}

func TestHTTPRequest_NetworkErrorsAreRetryable(t *testing.T) {
	closed := answer(t, 200, "text/plain", "")
	hangsUp := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	held := make(chan struct{})
	hangs := serve(t, func(http.ResponseWriter, *http.Request) { <-held })
	t.Cleanup(func() { close(held) }) // before the server is closed
	for _, tt := range []struct {
		name, input string
		unknown     bool
	}{
		{"no such host", `{"url":"http://nowhere.invalid/"}`, false},
		{"a hang-up", `{"url":"` + hangsUp + `","method":"POST","body":1}`, true},
		{"no answer in time", `{"url":"` + hangs + `","method":"POST","body":1,"timeout":"50ms"}`, true},
	} {
		_, fail := request(t, caller(t, outbound.Options{Resolver: names{}}), closed, tt.input)
		if fail == nil || fail.Code != "HTTP_ERROR" || !fail.Retryable || fail.Unknown != tt.unknown {
			t.Errorf("%s: got %+v", tt.name, fail)
		}
	}
}

func TestHTTPRequest_RefusalsAreFinal(t *testing.T) {
	c := newClient(t, outbound.Options{})
	_, fail := request(t, c, serve(t, called(t)), `{"url":"URL"}`)
	if fail == nil || fail.Code != "HTTP_ERROR" || fail.Retryable || !strings.Contains(fail.Message, "http-allow") {
		t.Errorf("got %+v", fail)
	}
}

func TestHTTPRequest_AnswersOverTheLimitAreFinal(t *testing.T) {
	for name, body := range map[string]string{
		"as it came": strings.Repeat("x", 1001),
		"as JSON":    strings.Repeat("\x01", 900),
	} {
		server := answer(t, 200, "text/plain", body)
		_, fail := request(t, caller(t, outbound.Options{MaxBytes: 1000}), server, `{"url":"URL"}`)
		if fail == nil || fail.Code != "PAYLOAD_TOO_LARGE" || fail.Retryable || !strings.Contains(fail.Message, "1000") {
			t.Errorf("%s: got %+v", name, fail)
		}
	}
}

// Whatever a service sends back, the secret is not in it any more.
func TestHTTPRequest_TheSecretNeverComesBack(t *testing.T) {
	for name, mirror := range map[string]http.HandlerFunc{
		"in a header": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Seen", r.Header.Get("X")) },
		"in text":     func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "you sent %s", r.Header.Get("X")) },
		"in bytes":    func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "\xff%s", r.Header.Get("X")) },
		"in JSON, escaped in an unusual way": func(w http.ResponseWriter, r *http.Request) {
			var escaped strings.Builder
			for _, c := range r.Header.Get("X") {
				fmt.Fprintf(&escaped, `\u%04x`, c)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"list":[{"%s":"x %s y"}]}`, escaped.String(), escaped.String())
		},
		"in an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, r.Header.Get("X"))
		},
		"in an error that is cut": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, strings.Repeat(".", 1015), r.Header.Get("X"))
		},
		"in a redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.Header.Get("X"))
			w.WriteHeader(http.StatusFound)
		},
	} {
		output, fail := request(t, caller(t, outbound.Options{}), serve(t, mirror), `{"url":"URL","headers":{"x":{"secret":"API_TOKEN"}}}`)
		text := string(output)
		if fail != nil {
			text = fail.Message + string(fail.Details)
		}
		if raw, err := base64.StdEncoding.DecodeString(between(text, `{"base64":"`, `"`)); err == nil {
			text += string(raw)
		}
		for _, form := range []string{secret, string(exactjson.FromString(secret)), "s3cr3t"} {
			if strings.Contains(text, form) {
				t.Errorf("%s: the secret came back: %s", name, text)
			}
		}
		if !strings.Contains(text, "[secret]") && name != "in an error that is cut" {
			t.Errorf("%s: nothing stands for the secret: %s", name, text)
		}
	}
}

func between(text, begin, end string) string {
	_, rest, _ := strings.Cut(text, begin)
	inner, _, _ := strings.Cut(rest, end)
	return inner
}
