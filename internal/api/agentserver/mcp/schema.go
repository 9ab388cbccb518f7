package mcp

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/record/record"
)

// inputOf returns the schema of a tool's arguments. The protocol demands the schema of an object;
// a graph without such a schema takes any object. The package of the protocol panics if it
// cannot use the schema of a tool, so a schema that asks for headers of requests counts as none.
func inputOf(schema json.RawMessage) json.RawMessage {
	var of map[string]any
	if len(schema) > maxInput || json.Unmarshal(schema, &of) != nil || of["type"] != "object" ||
		bytes.Contains(bytes.ToLower(record.Encode(of)), []byte("x-mcp-header")) {
		return json.RawMessage(`{"type":"object"}`)
	}
	if !takeText(of) {
		return schema
	}
	return record.Encode(of)
}

// definitions is the path of a schema's definitions.
const definitions = "#/$defs/"

// takeText makes the lists of messages in a schema texts, which graphs take for a message of the
// user: models that call tools cannot use the long schemas of messages. It reports whether there
// are such lists.
func takeText(schema map[string]any) (changed bool) {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		list, _ := property.(map[string]any)
		if !isOfMessages(list) {
			continue
		}
		text := map[string]any{"type": "string", "description": "The user message to send to the agent."}
		if title, ok := list["title"]; ok {
			text["title"] = title
		}
		properties[name], changed = text, true
	}
	defs, _ := schema["$defs"].(map[string]any)
	if !changed || defs == nil {
		return changed
	}
	delete(schema, "$defs")
	used := map[string]any{}
	use(schema, defs, used)
	if len(used) > 0 {
		schema["$defs"] = used
	}
	return true
}

// isOfMessages reports whether a schema is that of a list of the framework's messages.
func isOfMessages(list map[string]any) bool {
	items, _ := list["items"].(map[string]any)
	for _, choice := range []string{"oneOf", "anyOf"} {
		kinds, _ := items[choice].([]any)
		for _, kind := range kinds {
			of, _ := kind.(map[string]any)
			if reference, _ := of["$ref"].(string); reference == definitions+"HumanMessage" {
				return true
			}
		}
	}
	return false
}

// use adds the definitions to which a schema leads to those that are used.
func use(schema any, defs, used map[string]any) {
	switch of := schema.(type) {
	case []any:
		for _, item := range of {
			use(item, defs, used)
		}
	case map[string]any:
		reference, _ := of["$ref"].(string)
		name, isDefinition := strings.CutPrefix(reference, definitions)
		definition, known := defs[name]
		if _, seen := used[name]; isDefinition && known && !seen {
			used[name] = definition
			use(definition, defs, used)
		}
		for _, member := range of {
			use(member, defs, used)
		}
	}
}
