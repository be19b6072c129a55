package httpapi

import (
	"fmt"

	"perigee/engine"
	"perigee/engine/exactjson"
	"perigee/engine/history"
)

func (s *server) complete(c *call) (answer, error) {
	return s.report(c, func(e envelope) engine.Result { return e.success(s.MaxPayloadBytes) })
}

func (s *server) fail(c *call) (answer, error) {
	return s.report(c, func(e envelope) engine.Result { return e.failure(s.MaxPayloadBytes) })
}

// report handles the two calls that carry one result.
func (s *server) report(c *call, take func(envelope) engine.Result) (answer, error) {
	if c.overflow {
		return answer{}, s.recordOverflow(c)
	}
	e, err := parseEnvelope(c.text, "")
	if err != nil {
		return answer{}, err
	}
	result := take(e)
	req := engine.ResultsRequest{Results: []engine.Result{result}}
	if next := e.objectAt("next"); next != nil {
		req.NextSession, req.NextMax = next.needText("worker_session_id"), 1
	}
	if err := e.done(); err != nil {
		return answer{}, err
	}
	refused := refusal(&result)
	if refused != nil {
		req.NextSession, req.NextMax = "", 0 // the answer has no room for a task
	}
	if err := s.ownReport(c, &req); err != nil {
		return answer{}, err
	}
	out, err := s.Engine.Results(c.Context(), req)
	switch {
	case err != nil:
		return answer{}, err
	case refused != nil:
		return answer{}, refused
	case len(out.Acks) != 1:
		return answer{}, fmt.Errorf("engine gave %d acks for one result", len(out.Acks))
	}
	w := jsonWriter{}
	w.open('{')
	w.ack(&out.Acks[0])
	if len(out.Next) > 0 {
		w.name("next")
		w.assignment(&out.Next[0])
	}
	w.textIf("next_error", out.NextError)
	w.close('}')
	return answer{body: w.buf}, nil
}

// recordOverflow ends the attempt whose report is too long to be read, if its
// token stands in what was read.
func (s *server) recordOverflow(c *call) error {
	refused := tooLarge(len(c.text), reportBody)
	token := tokenIn(c.text)
	if token == "" || len(token) > maxNameBytes || !plain(token) {
		return refused
	}
	req := engine.ResultsRequest{Results: []engine.Result{{Token: token, TooLarge: refused.Message}}}
	if err := s.ownReport(c, &req); err != nil {
		return err
	}
	if _, err := s.Engine.Results(c.Context(), req); err != nil {
		return err
	}
	return refused
}

// refusal is the error that answers a result which was recorded as a failed
// attempt because its payload could not be taken.
func refusal(r *engine.Result) error {
	switch {
	case r.TooLarge != "":
		return errorf(engine.PayloadTooLarge, "%s; the attempt is recorded as failed", r.TooLarge)
	case r.Malformed != "":
		return errorf(engine.InvalidRequest, "%s; the attempt is recorded as failed", r.Malformed)
	}
	return nil
}

func (s *server) ownReport(c *call, req *engine.ResultsRequest) error {
	if !bound(c.who) {
		return nil
	}
	tokens := make([]string, len(req.Results))
	for i := range req.Results {
		tokens[i] = req.Results[i].Token
	}
	return firstError(s.ownTokens(c, tokens...), s.ownSession(c, req.NextSession))
}

// success reads {token, output?}.
func (e envelope) success(most int) engine.Result {
	r := engine.Result{Token: e.needText("token"), Output: e.value("output")}
	e.judge(&r, "output", r.Output, most)
	return r
}

// failure reads {token, error, retry_after_ms?}.
func (e envelope) failure(most int) engine.Result {
	r := engine.Result{Token: e.needText("token")}
	text := e.value("error")
	if e.judge(&r, "error", text, most); r.Malformed != "" || r.TooLarge != "" {
		return r
	}
	in := e.objectAt("error")
	if in == nil {
		if text.IsNull() {
			e.wrong("error", "an object", text)
		}
		return r
	}
	r.Error = &history.TaskError{
		Code:      in.needText("code"),
		Message:   in.prose("message"),
		Retryable: in.flag("retryable", true),
		Details:   in.get("details"),
	}
	if !e.get("retry_after_ms").Absent() {
		after := e.millis("retry_after_ms", 0)
		r.RetryAfter = &after
	}
	return r
}

// judge marks a result whose payload could not be parsed or is too large.
func (e envelope) judge(r *engine.Result, member string, payload exactjson.Value, most int) {
	at := exactjson.JoinPointer(e.path, member)
	switch why, broken := e.broken[member]; {
	case broken:
		r.Malformed = fmt.Sprintf("the value of %s is not JSON that can be taken: %s", at, why)
		r.Output = ""
	case len(payload) > most:
		r.TooLarge = fmt.Sprintf("the value of %s has %d bytes, more than the %d that a payload may have", at, len(payload), most)
		r.Output = ""
	}
}

// results handles many results in one call. Each ack stands for itself, so a
// payload that cannot be taken fails its own attempt only.
func (s *server) results(c *call) (answer, error) {
	body, list, err := parseReports(c.text)
	if err != nil {
		return answer{}, err
	}
	req := engine.ResultsRequest{}
	for _, e := range list {
		req.Results = append(req.Results, e.either(s.MaxPayloadBytes))
		if err := e.done(); err != nil {
			return answer{}, err
		}
	}
	if next := body.objectAt("next"); next != nil {
		req.NextSession = next.needText("worker_session_id")
		req.NextMax = int(next.count("max_tasks", 1, maxTasks, 1))
	}
	if err := body.done(); err != nil {
		return answer{}, err
	}
	if err := s.ownReport(c, &req); err != nil {
		return answer{}, err
	}
	out, err := s.Engine.Results(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.name("acks")
	w.open('[')
	for i := range out.Acks {
		w.open('{')
		w.text("token", out.Acks[i].Token)
		w.ack(&out.Acks[i])
		w.close('}')
	}
	w.close(']')
	w.assignments("tasks", out.Next)
	w.textIf("next_error", out.NextError)
	w.close('}')
	return answer{body: w.buf}, nil
}

func (w *jsonWriter) ack(a *engine.Ack) {
	w.bool("accepted", a.Accepted)
	if !a.Accepted {
		w.textIf("reason", a.Reason)
		w.textIf("error", a.Error)
	}
}

// either reads a success or a failure.
func (e envelope) either(most int) engine.Result {
	_, brokenError := e.broken["error"]
	hasError := brokenError || !e.get("error").Absent()
	if _, broken := e.broken["output"]; hasError && (broken || !e.get("output").Absent()) {
		e.faults.add(e.path, "expected either output or error, got both")
	}
	if hasError {
		return e.failure(most)
	}
	return e.success(most)
}

// parseReports tells the results of one body apart, each with its own fate.
func parseReports(text []byte) (body envelope, list []envelope, err error) {
	members, complete := scanMembers(string(text))
	if !complete {
		if _, err := exactjson.Parse(text); err != nil {
			return body, nil, syntaxError(err, "")
		}
		return body, nil, errorf(engine.InvalidRequest, "expected the body to be a JSON object with results")
	}
	body.object = &object{faults: new(faults)}
	for _, m := range members {
		if m.key != "results" {
			value, err := exactjson.Parse([]byte(m.text))
			if err != nil {
				return body, nil, syntaxError(err, exactjson.JoinPointer("", shorten(m.key)))
			}
			body.members = append(body.members, exactjson.Member{Key: m.key, Value: value})
			continue
		}
		if list, err = parseElements(m.text); err != nil {
			return body, nil, err
		}
	}
	if list == nil {
		return body, nil, errorf(engine.InvalidRequest, "the body at /results: expected an array of 1 to %d results", maxBatch)
	}
	return body, list, nil
}

func parseElements(text string) ([]envelope, error) {
	elements, complete := scanElements(text)
	if !complete || len(elements) == 0 || len(elements) > maxBatch {
		return nil, errorf(engine.InvalidRequest, "the body at /results: expected an array of 1 to %d results", maxBatch)
	}
	list := make([]envelope, len(elements))
	for i, element := range elements {
		e, err := parseEnvelope([]byte(element), fmt.Sprintf("/results/%d", i))
		if err != nil {
			return nil, err
		}
		list[i] = e
	}
	return list, nil
}

func (s *server) progress(c *call) (answer, error) {
	in, err := c.workerObject()
	if err != nil {
		return answer{}, err
	}
	token, details := in.needText("token"), in.value("details")
	if err := in.done(); err != nil {
		return answer{}, err
	}
	if len(details) > s.MaxPayloadBytes {
		return answer{}, errorf(engine.PayloadTooLarge, "the value of /details has %d bytes, more than the %d that a payload may have", len(details), s.MaxPayloadBytes)
	}
	if err := s.ownTokens(c, token); err != nil {
		return answer{}, err
	}
	accepted, cancel, err := s.Engine.Progress(c.Context(), token, details)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.bool("accepted", accepted)
	w.bool("cancel", cancel)
	w.close('}')
	return answer{body: w.buf}, nil
}
