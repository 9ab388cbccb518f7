//go:build cost

package cost_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// step measures one operation. Its texts may contain names of kept values in braces, like the
// paths of operations.
type step struct {
	operation string
	// body is JSON, query begins with "?".
	body, query string
	// keep lists the values of the answer that later steps need, as "name=path", with a point
	// before each member or place in a list.
	keep string
	// before makes the resource that the operation needs, after waits for the work that it has
	// started.
	before, after func(s *stack)
	// headers are the headers of a sender that is not a client.
	headers func(s *stack, body string) http.Header
	// ends is the last counted request of an operation that then reads the run that it
	// creates. Reading the run is not counted.
	ends string
	// endless answers stream until the client hangs up.
	endless bool
	// varies says that the consumption depends on the speed of the machine.
	varies bool
}

// drive takes the steps in their order.
func (m *measured) drive(s *stack, of *document, steps ...step) {
	s.t.Helper()
	for _, step := range steps {
		operation, ok := of.operations[step.operation]
		if !ok {
			s.t.Fatalf("%s has no operation %s", of.title, step.operation)
		}
		if step.before != nil {
			step.before(s)
		}
		address := s.fill(operation.path + step.query)
		if of == agentServer {
			address = strings.TrimPrefix(address, "/")
		}
		var body any
		text := s.fill(step.body)
		if text != "" {
			body = json.RawMessage(text)
		}
		headers := http.Header{}
		if step.headers != nil {
			headers = step.headers(s, text)
		}
		s.meter.take()
		answer := s.send(operation.method, address, body, headers)
		content := s.content(answer, step.endless)
		consumed := s.meter.of(answer.Header.Get("X-Request-Id"))
		if answer.StatusCode >= http.StatusBadRequest {
			s.t.Errorf("%s: %s %s: status %d: %s", step.operation, operation.method, address, answer.StatusCode, content)
			continue
		}
		if step.ends != "" {
			consumed, _ = s.split(consumed, step.ends)
		}
		// The number of polls depends only on time.
		consumed = consumed.only(func(c charge) bool { return !strings.HasPrefix(c.what, "poll ") })
		m.operations = append(m.operations, row{of: of, name: step.operation, trace: consumed, varies: step.varies})
		s.remember(step, content)
		if step.after != nil {
			step.after(s)
		}
	}
}

// content reads an answer. For an answer that has no end, it reads the first part, and returns
// nothing.
func (s *stack) content(answer *http.Response, endless bool) []byte {
	s.t.Helper()
	if endless {
		s.until("what there is has been sent", func() bool { return time.Since(time.Unix(0, s.meter.changed.Load())) > time.Second/2 })
		check.Must(s.t, answer.Body.Close())
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	check.Must(s.t, err)
	check.Must(s.t, answer.Body.Close())
	return text
}

// fill puts kept values into a text.
func (s *stack) fill(text string) string {
	for name, value := range s.kept {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// remember keeps the values that a step names from an answer: texts as they are, other values
// in JSON.
func (s *stack) remember(step step, content []byte) {
	s.t.Helper()
	for pair := range strings.FieldsSeq(step.keep) {
		name, path, _ := strings.Cut(pair, "=")
		var value any
		check.Must(s.t, json.NewDecoder(bytes.NewReader(content)).Decode(&value))
		for part := range strings.SplitSeq(path, ".") {
			value = member(value, part)
		}
		if value == nil {
			s.t.Errorf("%s: there is no %s in %s", step.operation, path, content)
			continue
		}
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			check.Must(s.t, err)
			text = string(encoded)
		}
		s.kept[name] = text
	}
}

func member(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// operationsReport writes a table for each document, and the operations that are not in it.
func operationsReport(b *strings.Builder, rows []row) {
	for _, d := range documents {
		fmt.Fprintf(b, "\n%s%s\n\n| Operation | Reads | Writes | Index writes | $ per million | Requests |\n|---|---|---|---|---|---|\n", heading, d.title)
		for _, o := range rows {
			if o.of == d {
				u, about := o.units(), o.about()
				fmt.Fprintf(b, "| %s | %s%g | %s%g | %s%g | %s%.2f | %s |\n", o.name, about, u.read, about, u.write, about, u.index, about, u.dollars()*1e6, o.requests())
			}
		}
	}
	b.WriteString("\nNot measured:\n\n" + exceptions())
}
