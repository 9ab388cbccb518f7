package providers

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// quickWords and slowWords are the lengths of answers, pace is the time between two words.
	quickWords, slowWords = 8, 1500
	pace                  = 30 * time.Millisecond
)

// The words of a conversation that decide how long its answer is.
const (
	Quickly = "quickly"
	Slowly  = "slowly"
)

// turn is one message of a conversation.
type turn struct {
	role, text string
	// calls is how many tools the message calls.
	calls int
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"parameters"`
}

// conversation is a request, in the same form for all interfaces.
type conversation struct {
	turns []turn
	tools []tool
	// choice is auto, none, required or the name of the tool that must be called.
	choice string
	// format is the schema that the answer must follow, or nil.
	format json.RawMessage
	// id is the request's own number: graphs tell messages apart by the ids of answers.
	id string
}

// reply is the model's answer: words, or a call of a tool.
type reply struct {
	id    string
	words []string
	pace  time.Duration
	call  *call
}

type call struct{ id, name, arguments string }

func (r reply) text() string { return strings.Join(r.words, "") }

// answer returns the only answer to a conversation.
func (c conversation) answer() reply {
	how := c.how()
	r := reply{id: c.id}
	if c.format != nil {
		r.words = []string{encode(plant(c.format, how))}
		return r
	}
	if chosen := c.chosen(); chosen != nil {
		r.call = &call{"call_" + c.id, chosen.Name, encode(plant(chosen.Schema, how))}
		return r
	}
	count := quickWords
	if how == Slowly {
		count = slowWords
	}
	r.words, r.pace = []string{"This ", "is ", "the ", "answer: "}, pace
	for i := range count {
		r.words = append(r.words, fmt.Sprintf("word%d ", i))
	}
	return r
}

// number returns a number that is a request's own, as it is the same for the same request only.
func number(body []byte) string {
	hash := fnv.New64a()
	_, _ = hash.Write(body)
	return strconv.FormatUint(hash.Sum64(), 36)
}

// how returns the last word of the conversation about the length of its answer.
func (c conversation) how() string {
	var all strings.Builder
	for _, one := range c.turns {
		all.WriteString(one.text + "\n")
	}
	if strings.LastIndex(all.String(), Slowly) > strings.LastIndex(all.String(), Quickly) {
		return Slowly
	}
	return Quickly
}

// called returns how many tools the conversation has called.
func (c conversation) called() (count int) {
	for _, one := range c.turns {
		count += one.calls
	}
	return count
}

// chosen returns the tool that the model calls, or nil. If a tool is required, the model takes
// them in turn, so that it also comes to the tool that ends the work.
func (c conversation) chosen() *tool {
	if len(c.tools) == 0 || len(c.turns) == 0 || c.choice == "none" {
		return nil
	}
	if c.choice == "required" {
		return &c.tools[c.called()%len(c.tools)]
	}
	last := c.turns[len(c.turns)-1]
	for i, one := range c.tools {
		if one.Name == c.choice || (last.role == "user" && strings.Contains(last.text, "use the tool "+one.Name)) {
			return &c.tools[i]
		}
	}
	return nil
}

func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // the values come from JSON
	}
	return string(text)
}

// schema holds the members of a JSON schema that matter to a value.
type schema struct {
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Definition map[string]json.RawMessage `json:"definitions"`
	Type       json.RawMessage            `json:"type"`
	Const      any                        `json:"const"`
	Enum       []any                      `json:"enum"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Items      json.RawMessage            `json:"items"`
	MinItems   int                        `json:"minItems"`
	Minimum    *float64                   `json:"minimum"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// depth limits the values of a schema that contains itself.
const depth = 8

// plant returns a value that the schema allows; its texts say how the next answer comes.
func plant(text json.RawMessage, how string) any {
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		return map[string]any{}
	}
	defs := root.Defs
	if defs == nil {
		defs = root.Definition
	}
	return planter{defs, how}.value("value", text, depth)
}

type planter struct {
	defs map[string]json.RawMessage
	how  string
}

// endings are the values of an enumeration that end a loop, in lower case.
var endings = []string{"finish", "end", "__end__", "done", "stop", "complete"}

func (p planter) value(name string, text json.RawMessage, depth int) any {
	var s schema
	if err := json.Unmarshal(text, &s); err != nil || depth == 0 {
		return nil
	}
	if target, ok := p.defs[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]; ok && s.Ref != "" {
		return p.value(name, target, depth-1)
	}
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		at := slices.IndexFunc(s.Enum, func(one any) bool {
			word, _ := one.(string)
			return slices.Contains(endings, strings.ToLower(word))
		})
		return s.Enum[max(0, at)]
	}
	for _, choices := range [][]json.RawMessage{s.AnyOf, s.OneOf, s.AllOf} {
		for _, one := range choices {
			if value := p.value(name, one, depth-1); value != nil {
				return value
			}
		}
	}
	return p.typed(name, s, depth)
}

// kind returns the type of the values, the first if there are several.
func (s schema) kind() (kind string) {
	var kinds []string
	if json.Unmarshal(s.Type, &kinds) == nil && len(kinds) > 0 {
		return kinds[0]
	}
	if json.Unmarshal(s.Type, &kind) != nil && s.Properties != nil {
		return "object"
	}
	return kind
}

func (p planter) typed(name string, s schema, depth int) any {
	switch s.kind() {
	case "string":
		return "a " + strings.ReplaceAll(name, "_", " ") + ", " + p.how
	case "boolean":
		// A model that needs nothing more ends the loops of most graphs.
		return !strings.Contains(name, "need")
	case "integer", "number":
		if s.Minimum != nil && *s.Minimum > 1 {
			return *s.Minimum
		}
		return 1
	case "array":
		items := make([]any, 0, max(1, s.MinItems))
		for range max(1, s.MinItems) {
			if one := p.value(name, s.Items, depth-1); one != nil {
				items = append(items, one)
			}
		}
		return items
	case "object":
		members := map[string]any{}
		for member, one := range s.Properties {
			members[member] = p.value(member, one, depth-1)
		}
		return members
	default:
		return nil
	}
}
