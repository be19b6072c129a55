package httpapi

import (
	"perigee/engine"
	"perigee/store"
)

// The routes of the worker protocol never look at the query: what a newer
// worker adds there is ignored, as in the body.

func (s *server) registerWorker(c *call) (answer, error) {
	in, err := c.workerObject()
	if err != nil {
		return answer{}, err
	}
	req := engine.RegisterRequest{
		WorkerID: in.needText("worker_id"),
		Runtime:  in.needText("runtime"),
		SDK:      in.text("sdk"),
	}
	for _, contract := range in.objectsAt("contracts", maxContracts) {
		req.Contracts = append(req.Contracts, store.Contract{
			TaskName:        contract.needText("task_name"),
			ContractVersion: contract.needText("contract_version"),
		})
	}
	if err := in.done(); err != nil {
		return answer{}, err
	}
	if err := mayRegister(c.who, req); err != nil {
		return answer{}, err
	}
	r, err := s.Engine.RegisterWorker(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.bool("accepted", true)
	w.text("worker_session_id", r.SessionID)
	w.int("heartbeat_interval_ms", r.HeartbeatInterval.Milliseconds())
	w.int("session_timeout_ms", r.SessionTimeout.Milliseconds())
	w.int("max_wait_ms", s.wait(maxWait).Milliseconds())
	w.texts("warnings", r.Warnings)
	w.close('}')
	return answer{body: w.buf}, nil
}

func (s *server) poll(c *call) (answer, error) {
	in, err := c.workerObject()
	if err != nil {
		return answer{}, err
	}
	req := engine.PollRequest{
		SessionID: in.needText("worker_session_id"),
		PollID:    in.text("poll_id"),
		FirstTry:  in.flag("first_try", false),
		Wait:      s.wait(in.millis("wait_ms", defaultPollWait)),
		MaxTasks:  int(in.count("max_tasks", 1, maxTasks, 1)),
	}
	if err := in.done(); err != nil {
		return answer{}, err
	}
	if err := s.ownSession(c, req.SessionID); err != nil {
		return answer{}, err
	}
	polled, err := s.Engine.Poll(c.Context(), req)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.assignments("tasks", polled.Tasks)
	w.int("next_poll_ms", polled.NextPoll.Milliseconds())
	w.close('}')
	return answer{body: w.buf}, nil
}

func (w *jsonWriter) assignments(name string, list []engine.Assignment) {
	w.name(name)
	w.open('[')
	for i := range list {
		w.assignment(&list[i])
	}
	w.close(']')
}

func (w *jsonWriter) assignment(a *engine.Assignment) {
	w.comma()
	w.buf = a.AppendJSON(w.buf)
}

func (s *server) heartbeat(c *call) (answer, error) {
	in, err := c.workerObject()
	if err != nil {
		return answer{}, err
	}
	session, tokens := in.needText("worker_session_id"), in.texts("tokens")
	if err := in.done(); err != nil {
		return answer{}, err
	}
	if err := firstError(s.ownSession(c, session), s.ownTokens(c, tokens...)); err != nil {
		return answer{}, err
	}
	cancel, err := s.Engine.Heartbeat(c.Context(), session, tokens)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.bool("accepted", true)
	w.texts("cancel", cancel)
	w.close('}')
	return answer{body: w.buf}, nil
}

func (s *server) unregister(c *call) (answer, error) {
	in, err := c.workerObject()
	if err != nil {
		return answer{}, err
	}
	session := in.needText("worker_session_id")
	if err := in.done(); err != nil {
		return answer{}, err
	}
	if err := s.ownSession(c, session); err != nil {
		return answer{}, err
	}
	if err := s.Engine.Unregister(c.Context(), session); err != nil {
		return answer{}, err
	}
	return answer{body: []byte(`{"accepted":true}`)}, nil
}

func (s *server) listWorkers(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	list, err := s.Engine.Workers(c.Context())
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.name("workers")
	w.open('[')
	for i := range list {
		w.worker(&list[i])
	}
	w.close(']')
	w.close('}')
	return answer{body: w.buf}, nil
}

func (w *jsonWriter) worker(info *engine.WorkerInfo) {
	w.open('{')
	w.text("worker_id", info.WorkerID)
	w.text("runtime", info.Runtime)
	w.text("sdk", info.SDK)
	w.name("contracts")
	w.open('[')
	for _, contract := range info.Contracts {
		w.open('{')
		w.text("task_name", contract.TaskName)
		w.text("contract_version", contract.ContractVersion)
		w.close('}')
	}
	w.close(']')
	w.int("last_seen_ms", info.LastSeenMS)
	w.int("registered_at_ms", info.RegisteredAtMS)
	w.bool("online", info.Online)
	w.int("sessions", int64(info.Sessions))
	w.int("inflight", int64(info.Inflight))
	w.close('}')
}
