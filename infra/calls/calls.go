package calls

import (
	"perigee/engine"
	"perigee/infra/config"
	"perigee/infra/outbound"
	"perigee/infra/push"
)

// Enable sets HTTPRequest and Push of an engine's options where the settings ask
// for them. invoker calls Lambda functions; nil: routes to such are refused. The
// client is the caller's to close. The error names what is wrong with the
// routes.
func Enable(o *engine.Options, s config.Settings, secrets outbound.Secrets, invoker push.Invoker) (*outbound.Client, error) {
	client := outbound.New(outbound.Options{Allow: s.HTTPAllow, MaxBytes: s.Engine.MaxPayloadBytes, Secrets: secrets})
	if s.EnableHTTPAdapter {
		o.HTTPRequest = client.HTTPRequest
	}
	routes, err := push.Load(s.Routes)
	if err != nil || len(routes) == 0 {
		return client, err
	}
	pusher, err := push.New(push.Options{Routes: routes, Client: client, Invoker: invoker})
	if err != nil {
		return client, err
	}
	o.Push = pusher
	return client, nil
}
