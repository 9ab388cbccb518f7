package output

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Types of messages.
const (
	Human = "human"
	AI    = "ai"
	Tool  = "tool"
)

// Message is a message of a thread.
type Message struct {
	Type      string     `json:"type"`
	ID        string     `json:"id"`
	Content   Content    `json:"content"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Metadata  struct {
		// Incomplete marks the stored part of a message whose writing was interrupted.
		Incomplete bool `json:"incomplete,omitempty"`
	} `json:"response_metadata,omitzero"`
}

// ToolCall is a call that an ai message asks for.
type ToolCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

func (c ToolCall) String() string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(c.Args)) {
		args = append(args, fmt.Sprintf("%s: %v", name, c.Args[name]))
	}
	return c.Name + "(" + strings.Join(args, ", ") + ")"
}

// Content is the text of a message, which comes as a string or as a list of blocks.
type Content string

// UnmarshalJSON implements json.Unmarshaler. Blocks without text are ignored.
func (c *Content) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*c = Content(text)
		return nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &blocks); err != nil {
		return fmt.Errorf("the content of a message is neither a string nor a list of blocks: %w", err)
	}
	var whole strings.Builder
	for _, block := range blocks {
		whole.WriteString(block.Text)
	}
	*c = Content(whole.String())
	return nil
}

// Text returns the message in the form for people.
func (m Message) Text() string {
	var parts []string
	if text := strings.TrimSpace(string(m.Content)); text != "" {
		parts = append(parts, text)
	}
	for _, call := range m.ToolCalls {
		parts = append(parts, "calls "+call.String())
	}
	if m.Metadata.Incomplete {
		parts = append(parts, "[interrupted: incomplete]")
	}
	return strings.Join(parts, " ")
}

// Shape returns the kind of the message, for comparison and for people.
func (m Message) Shape() string {
	switch {
	case len(m.ToolCalls) > 0:
		return m.Type + " tool call"
	case m.Metadata.Incomplete:
		return m.Type + " (incomplete)"
	default:
		return m.Type
	}
}
