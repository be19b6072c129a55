package outbound

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"perigee/engine"
	"perigee/engine/decide"
	"perigee/engine/exactjson"
)

// output is {status, headers, body}. Names of headers are in lower case, several
// values of one joined by ", ".
func (c *call) output(resp Response) exactjson.Value {
	scrub := c.scrub()
	var headers []exactjson.Member
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		text := strings.ToValidUTF8(strings.Join(resp.Header[name], ", "), "\uFFFD")
		headers = append(headers, exactjson.Member{
			Key:   strings.ToValidUTF8(strings.ToLower(name), "\uFFFD"),
			Value: exactjson.FromString(scrub.text(text)),
		})
	}
	return exactjson.Object([]exactjson.Member{
		{Key: "status", Value: exactjson.FromInt(int64(resp.Status))},
		{Key: "headers", Value: exactjson.Object(headers)},
		{Key: "body", Value: bodyValue(resp, scrub)},
	})
}

// bodyValue is null for no body, the value of one that says it is JSON and is,
// else its text, and {"base64": …} where it is no text.
func bodyValue(resp Response, scrub scrubber) exactjson.Value {
	switch {
	case len(resp.Body) == 0:
		return exactjson.Null
	case isJSON(resp.Header.Get("Content-Type")):
		if v, err := exactjson.Parse(resp.Body); err == nil {
			return scrub.value(v)
		}
	}
	if utf8.Valid(resp.Body) {
		return exactjson.FromString(scrub.text(string(resp.Body)))
	}
	// Bytes may hold a secret as well as text may.
	bytes := scrub.text(string(resp.Body))
	return exactjson.Object([]exactjson.Member{
		{Key: "base64", Value: exactjson.FromString(base64.StdEncoding.EncodeToString([]byte(bytes)))},
	})
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}

// sendFailure is the failure of a call that has no answer.
func (c *call) sendFailure(err error) *engine.Failure {
	fail := failure(decide.CodeHTTP, "%s", c.scrub().text(err.Error()))
	fail.Retryable = true
	var e *Error
	if errors.As(err, &e) {
		fail.Retryable, fail.Unknown = !e.Final, e.Sent
		if e.TooLarge {
			fail.Code, fail.Unknown = decide.CodePayloadTooLarge, false
		}
	}
	return fail
}

// shownBytes is how much of an answer's body a failure keeps.
const shownBytes = 1024

// statusFailure is the failure of an answer whose status is to be retried.
func (c *call) statusFailure(resp Response, now time.Time) *engine.Failure {
	fail := failure(decide.CodeHTTP, "%s answered %s", c.where(), StatusText(resp.Status))
	fail.Retryable = true
	fail.RetryAfter = RetryAfter(resp.Header, now)
	details := []exactjson.Member{{Key: "status", Value: exactjson.FromInt(int64(resp.Status))}}
	if len(resp.Body) > 0 {
		details = append(details, exactjson.Member{Key: "body", Value: exactjson.FromString(beginning(c.scrub().text(string(resp.Body))))})
	}
	fail.Details = exactjson.Object(details)
	return fail
}

// beginning is the start of a text, short enough for an error.
func beginning(text string) string {
	if len(text) > shownBytes {
		text = text[:shownBytes] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// StatusText is a status with its words, where it has any: "503 Service
// Unavailable".
func StatusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// RetryAfter is how long an answer asks to wait, in seconds or until a moment:
// at most an hour; nil where it asks for nothing.
func RetryAfter(h http.Header, now time.Time) *time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	var wait time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	if wait <= 0 {
		return nil
	}
	wait = min(wait, longestWait)
	return &wait
}
