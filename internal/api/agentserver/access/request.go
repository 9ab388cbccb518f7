package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

var (
	null        = state.OrNull(nil)
	emptyObject = state.OrEmpty(nil)
)

const (
	memberMetadata  = "metadata"
	memberKwargs    = "kwargs"
	memberConfig    = "config"
	memberNamespace = "namespace"
)

// Request is a request in the form in which the repository's own authentication decides about
// it.
type Request struct {
	Access
	// Parts are decided about one by one: a batch has several parts.
	Parts []Part
	// Thread is the thread that the body names; "" if it names no thread.
	Thread string
	// MayCome says that the thread may be created later, or that the request creates it.
	MayCome bool
	// batch says that the body is a list.
	batch bool
	// command is the body that contains the first part as its params; nil if the request is
	// not a command.
	command map[string]json.RawMessage
}

// Part is the body of a request, or one element of it, with the values from the path and
// the query.
type Part struct {
	body map[string]json.RawMessage
	form
	// ids are the ids in the path.
	ids map[string]string
}

// form says how a body becomes the value that a handler sees, and back.
type form struct {
	// nested is the member of the value that holds all members of the body except those in
	// top; "" if there is no such member.
	nested string
	top    []string
	// namespace is the member of the body that the value has as namespace; "" if there is no
	// such member.
	namespace string
	// tagged bodies have metadata, which a handler may add.
	tagged bool
	// inQuery says that the namespace is in the query.
	inQuery bool
	// unsent has the members of the value that are not in the body. Changes of them have no
	// effect.
	unsent map[string]json.RawMessage
}

// forms has the forms of the accesses whose values differ from their bodies.
var forms = map[Access]form{
	{"threads", "create_run"}: {
		nested: memberKwargs, top: []string{"assistant_id", memberMetadata, "multitask_strategy", "if_not_exists", "after_seconds"}, tagged: true,
	},
	{"crons", "create"}:          {nested: "payload", top: cronMembers, tagged: true},
	{"crons", "update"}:          {nested: "payload", top: cronMembers, tagged: true},
	{"store", "get"}:             {namespace: memberNamespace, inQuery: true},
	{"store", "put"}:             {namespace: memberNamespace},
	{"store", "delete"}:          {namespace: memberNamespace},
	{"store", "search"}:          {namespace: "namespace_prefix"},
	{"store", "list_namespaces"}: {namespace: "prefix"},
}

// defaults has what handlers see for members that a body leaves out, so that they find the members
// that the framework's servers always hand over.
var defaults = map[Access]map[string]json.RawMessage{
	{"threads", "create"}: {"if_exists": json.RawMessage(`"raise"`)},
	{"threads", "search"}: {"values": emptyObject, "status": null, "limit": json.RawMessage(`10`), "offset": json.RawMessage(`0`)},
	{"threads", "create_run"}: {
		"thread_id": null, "run_id": null, "status": json.RawMessage(`"pending"`), "prevent_insert_if_inflight": json.RawMessage(`false`),
		"multitask_strategy": json.RawMessage(`"enqueue"`), "if_not_exists": json.RawMessage(`"reject"`), "after_seconds": json.RawMessage(`0`),
	},
	{"assistants", "create"}:     {"config": emptyObject, "context": null, "name": json.RawMessage(`"Untitled"`)},
	{"assistants", "update"}:     {"graph_id": null, "config": emptyObject, "context": null, "name": null},
	{"assistants", "search"}:     {"graph_id": null, "limit": json.RawMessage(`10`), "offset": json.RawMessage(`0`)},
	{"crons", "create"}:          {"thread_id": null, "end_time": null},
	{"crons", "update"}:          {"schedule": null, "end_time": null, "on_run_completed": null},
	{"crons", "search"}:          {"assistant_id": null, "thread_id": null, "limit": json.RawMessage(`10`), "offset": json.RawMessage(`0`)},
	{"store", "get"}:             {"refresh_ttl": null},
	{"store", "put"}:             {"index": null, "ttl": null},
	{"store", "search"}:          {"filter": null, "query": null, "refresh_ttl": null, "limit": json.RawMessage(`10`), "offset": json.RawMessage(`0`)},
	{"store", "list_namespaces"}: {"suffix": null, "max_depth": null, "limit": json.RawMessage(`100`), "offset": json.RawMessage(`0`)},
}

var cronMembers = []string{"schedule", "end_time", "timezone", "enabled", memberMetadata}

// commandMembers are the members from which the parameters of a command are read.
var commandMembers = []string{
	"assistant_id", "input", "config", memberMetadata, "multitask_strategy", "multitaskStrategy", "interrupt_id", "response", "responses", "update", "goto",
	"checkpoint_id", "run_id", memberNamespace, "keys", "limit", "before",
}

// Read reads a request that was checked.
func Read(r *http.Request, o web.Operation) (Request, error) {
	a := Request{Access: Of(o.Permission)}
	text, err := web.CheckedBody(r)
	if err != nil {
		return a, err
	}
	bodies := []json.RawMessage{text}
	if a.batch = strings.HasSuffix(o.Pattern, "/batch"); a.batch {
		if err := json.Unmarshal(text, &bodies); err != nil {
			return a, fmt.Errorf("read the batch: %w", err)
		}
	}
	ids := PathParams(r)
	for _, body := range bodies {
		part := Part{ids: ids}
		if len(body) > 0 {
			if err := json.Unmarshal(body, &part.body); err != nil {
				return a, fmt.Errorf("read the body: %w", err)
			}
		}
		a.Parts = append(a.Parts, part)
	}
	a.read(r, o)
	return a, nil
}

// read finds the form of the value, and reads the members of the body that concern the thread.
func (a *Request) read(r *http.Request, o web.Operation) {
	if len(a.Parts) == 0 { // an empty batch
		a.Parts = []Part{{}}
	}
	first := a.Parts[0].body
	if a.Action == actionOfCommand {
		a.MayCome = stringOf(first["method"]) == "run.start"
		if a.Action = commandActions[stringOf(first["method"])]; a.Action == "" {
			a.Action = "read"
		}
		a.enter(first)
		return
	}
	shape, known := forms[a.Access]
	if !known {
		shape.tagged = slices.Contains([]string{"create", "update", "search"}, a.Action) && r.Method != http.MethodGet && !o.NoMetadata
	}
	if (r.Method != http.MethodGet || shape.inQuery) && !o.NoMetadata {
		shape.unsent = defaults[a.Access]
	}
	for i := range a.Parts {
		a.Parts[i].form = shape
		if shape.inQuery {
			a.Parts[i].body = fromQuery(r)
		}
	}
	if strings.HasSuffix(o.Pattern, "/runs/cancel") {
		a.Thread = stringOf(first["thread_id"])
	}
	a.MayCome = strings.HasSuffix(o.Pattern, "/stream/events") || stringOf(first["if_not_exists"]) == "create"
}

// enter takes the parameters of a command for the body.
func (a *Request) enter(command map[string]json.RawMessage) {
	a.command = command
	part := Part{ids: a.Parts[0].ids, form: forms[a.Access]}
	part.unsent = defaults[a.Access]
	if json.Unmarshal(state.OrNull(command["params"]), &part.body) != nil {
		part.body = nil // the command refuses such parameters
	}
	// The command's own names are accepted in one spelling only: a handler looks at no other
	// spelling.
	maps.DeleteFunc(part.body, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(commandMembers, func(known string) bool { return name != known && strings.EqualFold(name, known) })
	})
	a.Parts[0] = part
}

// fromQuery returns the members that the query has for an item of the store.
func fromQuery(r *http.Request) map[string]json.RawMessage {
	query := r.URL.Query()
	labels := []string{}
	for _, path := range query[memberNamespace] {
		labels = append(labels, strings.Split(path, ".")...)
	}
	return map[string]json.RawMessage{memberNamespace: record.Encode(labels), "key": record.Encode(query.Get("key"))}
}

func stringOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // it stays "" if the value is absent or no string
	return text
}

// Value returns the value that a handler sees: the ids, and the members of the body.
func (p Part) Value() map[string]any {
	value, nested := map[string]any{}, map[string]any{}
	for name, member := range p.unsent {
		value[name] = member
	}
	for name, member := range p.body {
		if p.nested != "" && !slices.Contains(p.top, name) {
			nested[name] = member
		} else {
			value[name] = member
		}
	}
	if p.nested == memberKwargs {
		nested[memberConfig] = withConfigurable(p.body[memberConfig])
	}
	if p.nested != "" {
		value[p.nested] = nested
	}
	if p.namespace != "" && p.namespace != memberNamespace {
		value[memberNamespace] = state.OrNull(p.body[p.namespace])
		delete(value, p.namespace)
	}
	if p.tagged && state.Present(p.body[memberMetadata]) == nil {
		value[memberMetadata] = emptyObject
	}
	for name, id := range p.ids {
		value[name] = id
	}
	return value
}

// Become returns the part with the members of the value that a handler has returned.
func (p Part) Become(decided map[string]json.RawMessage) (Part, error) {
	if p.tagged && state.Present(decided[memberMetadata]) != nil && !state.IsObject(decided[memberMetadata]) {
		return p, errors.New("own authorization: the metadata is not an object")
	}
	changed, err := p.nestedIn(decided)
	if err != nil {
		return p, err
	}
	for name := range p.body {
		member, ok := decided[name]
		if _, isID := p.ids[name]; isID {
			member, ok = p.body[name], true
		}
		if ok && (p.nested == "" || slices.Contains(p.top, name)) {
			changed[name] = member
		}
	}
	if err := p.keepNamespace(changed, decided[memberNamespace]); err != nil {
		return p, err
	}
	if p.tagged {
		p.keepMetadata(changed, decided[memberMetadata])
	}
	p.body = changed
	return p, nil
}

// nestedIn returns the members of the body that are nested in the value.
func (p Part) nestedIn(value map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	nested := map[string]json.RawMessage{}
	if p.nested == "" {
		return nested, nil
	}
	if err := json.Unmarshal(state.OrNull(value[p.nested]), &nested); err != nil || nested == nil {
		return nil, fmt.Errorf("own authorization: the member %s is not an object", p.nested)
	}
	for _, name := range slices.Concat(p.top, []string{"thread_id"}) {
		delete(nested, name)
	}
	if p.nested == memberKwargs {
		dropNoConfigurable(nested)
	}
	return nested, nil
}

// withConfigurable returns the configuration of a run with the member configurable, which handlers
// always find.
func withConfigurable(config json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(state.OrNull(config), &members) != nil {
		return config
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	if state.Present(members["configurable"]) == nil {
		members["configurable"] = emptyObject
	}
	return record.Encode(members)
}

// dropNoConfigurable removes what withConfigurable has added, unless a handler has used it.
func dropNoConfigurable(kwargs map[string]json.RawMessage) {
	var config, configurable map[string]json.RawMessage
	if json.Unmarshal(state.OrNull(kwargs[memberConfig]), &config) != nil ||
		json.Unmarshal(state.OrNull(config["configurable"]), &configurable) != nil || len(configurable) > 0 {
		return
	}
	delete(config, "configurable")
	if len(config) == 0 {
		delete(kwargs, memberConfig)
	} else {
		kwargs[memberConfig] = record.Encode(config)
	}
}

// keepNamespace gives a body the namespace that a handler has left or made.
func (p Part) keepNamespace(changed map[string]json.RawMessage, namespace json.RawMessage) error {
	if p.namespace == "" {
		return nil
	}
	sent, err := labels(namespace)
	if err != nil {
		return err
	}
	delete(changed, memberNamespace)
	if sent != nil {
		changed[p.namespace] = record.Encode(sent)
	}
	return nil
}

// labels reads a namespace that a handler has made, whose labels are not empty and have no periods.
func labels(raw json.RawMessage) ([]string, error) {
	var names []string
	if err := json.Unmarshal(state.OrNull(raw), &names); err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	if slices.ContainsFunc(names, func(label string) bool { return label == "" || strings.Contains(label, ".") }) {
		return nil, fault.New(fault.Invalid, "The repository's own authentication has made a namespace with a label that is empty or has a period.")
	}
	return names, nil
}

// keepMetadata gives a body the metadata that a handler has left or made.
func (p Part) keepMetadata(changed map[string]json.RawMessage, metadata json.RawMessage) {
	delete(changed, memberMetadata)
	if state.Present(metadata) != nil && (string(metadata) != "{}" || state.Present(p.body[memberMetadata]) != nil) {
		changed[memberMetadata] = metadata
	}
}

// Replace puts the values that the handlers have returned into the request.
func (a Request) Replace(r *http.Request) error {
	first := a.Parts[0]
	if first.inQuery {
		sent, err := labels(first.body[memberNamespace])
		if err != nil {
			return err
		}
		query := r.URL.Query()
		query[memberNamespace] = []string{strings.Join(sent, ".")}
		r.URL.RawQuery = query.Encode()
		return nil
	}
	if r.Method == http.MethodGet || (len(first.body) == 0 && r.ContentLength == 0) {
		return nil
	}
	bodies := make([]json.RawMessage, len(a.Parts))
	for i, part := range a.Parts {
		bodies[i] = record.Encode(part.body)
	}
	switch {
	case a.batch:
		web.ReplaceBody(r, record.Encode(bodies))
	case a.command != nil:
		a.command["params"] = bodies[0]
		web.ReplaceBody(r, record.Encode(a.command))
	default:
		web.ReplaceBody(r, bodies[0])
	}
	return nil
}
