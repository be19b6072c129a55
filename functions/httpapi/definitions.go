package httpapi

import (
	"net/http"

	"perigee/engine"
	"perigee/engine/definition"
)

// definitionFormat is the engine's word for the content type.
func (c *call) definitionFormat() definition.Format {
	if c.format == formatYAML {
		return definition.YAML
	}
	return definition.JSON
}

func (s *server) registerDefinition(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	r, err := s.Engine.RegisterDefinition(c.Context(), c.text, c.definitionFormat())
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.text("name", r.Name)
	w.text("version", r.Version)
	w.text("definition_hash", r.Hash)
	w.bool("created", r.Created)
	if len(r.Warnings) > 0 {
		if err := w.faults("warnings", r.Warnings); err != nil {
			return answer{}, err
		}
	}
	w.close('}')
	return answer{status: createdOr200(r.Created), body: w.buf}, nil
}

func createdOr200(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (s *server) validateDefinition(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	found, err := s.Engine.ValidateDefinition(c.Context(), c.text, c.definitionFormat())
	if err != nil {
		return answer{}, err
	}
	valid := true
	for _, f := range found {
		valid = valid && f.Severity != definition.SeverityError
	}
	w := jsonWriter{}
	w.open('{')
	w.bool("valid", valid)
	if err := w.faults("faults", found); err != nil {
		return answer{}, err
	}
	w.close('}')
	return answer{body: w.buf}, nil
}

func (w *jsonWriter) faults(name string, list []definition.Fault) error {
	if list == nil {
		list = []definition.Fault{}
	}
	text, err := marshal(list)
	w.raw(name, text)
	return err
}

func (s *server) listDefinitions(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	list, err := s.Engine.Definitions(c.Context())
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.name("definitions")
	w.open('[')
	for i := range list {
		w.definition(&list[i])
	}
	w.close(']')
	w.close('}')
	return answer{body: w.buf}, nil
}

func (s *server) getDefinition(c *call) (answer, error) {
	q := c.query()
	version := q.text("version")
	if err := q.done(); err != nil {
		return answer{}, err
	}
	info, err := s.Engine.Definition(c.Context(), c.PathValue("name"), version)
	if err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.definition(&info)
	return answer{body: w.buf}, nil
}

func (w *jsonWriter) definition(d *engine.DefinitionInfo) {
	w.open('{')
	w.text("name", d.Name)
	w.text("version", d.Version)
	w.text("definition_hash", d.Hash)
	w.textIf("description", d.Description)
	w.bool("retired", d.Retired)
	w.int("created_at_ms", d.CreatedAtMS)
	if !d.Canonical.Absent() {
		w.value("definition", d.Canonical)
	}
	w.close('}')
}

func (s *server) getGraph(c *call) (answer, error) {
	if err := c.query().done(); err != nil {
		return answer{}, err
	}
	g, err := s.Engine.Graph(c.Context(), c.PathValue("name"), c.PathValue("version"))
	if err != nil {
		return answer{}, err
	}
	text, err := marshal(g)
	return answer{body: []byte(text)}, err
}

func (s *server) retireDefinition(c *call) (answer, error) {
	in, err := c.object()
	if err != nil {
		return answer{}, err
	}
	if err := firstError(in.done(), c.query().done()); err != nil {
		return answer{}, err
	}
	name, version := c.PathValue("name"), c.PathValue("version")
	if err := s.Engine.Retire(c.Context(), name, version); err != nil {
		return answer{}, err
	}
	w := jsonWriter{}
	w.open('{')
	w.text("name", name)
	w.text("version", version)
	w.bool("retired", true)
	w.close('}')
	return answer{body: w.buf}, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
