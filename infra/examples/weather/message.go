package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Types of the messages that this graph reads and writes. It passes over others.
const (
	human = "human"
	ai    = "ai"
	tool  = "tool"
)

// message is a message of the thread as this graph reads it.
type message struct {
	Type       string     `json:"type"`
	Content    content    `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Metadata   struct {
		// Incomplete marks what was kept of a message whose writing was interrupted.
		Incomplete bool `json:"incomplete"`
	} `json:"response_metadata"`
}

type toolCall struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
	ID   string         `json:"id"`
	Type string         `json:"type"`
}

// content is the text of a message, which comes as a string or as a list of blocks.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*c = content(text)
		return nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(data, &blocks); err != nil {
		return fmt.Errorf("the content of a message is neither a string nor a list: %w", err)
	}
	var texts []string
	for _, block := range blocks {
		if text, ok := blockText(block); ok {
			texts = append(texts, text)
		}
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}

// blockText returns the text of a block, which is a string or an object of the type "text". Images
// and others have none.
func blockText(data []byte) (string, bool) {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		return text, true
	}
	var block struct{ Type, Text string }
	if err := json.Unmarshal(data, &block); err != nil || block.Type != "text" {
		return "", false
	}
	return block.Text, true
}

// readTurn returns the messages of a state that the graph acts on: those from the last one of a
// person on, of the three types, that were written to their end. What was said before, it does not
// read, so an answer takes as long in a long conversation as in a short one.
func readTurn(messages []json.RawMessage) ([]message, error) {
	var turn []message
	for i := len(messages) - 1; i >= 0 && (len(turn) == 0 || turn[len(turn)-1].Type != human); i-- {
		var m message
		if err := json.Unmarshal(messages[i], &m); err != nil {
			return nil, &graphError{class: "InvalidState", message: fmt.Sprintf("decode state.values.messages[%d]: %v", i, err)}
		}
		if (m.Type == human || m.Type == ai || m.Type == tool) && !m.Metadata.Incomplete {
			turn = append(turn, m)
		}
	}
	slices.Reverse(turn)
	return turn, nil
}

// openCalls returns the tool calls of the last ai message that no tool message after it answers. A
// human message after it closes them: the person has moved on.
func openCalls(messages []message) []toolCall {
	answered := map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; m.Type {
		case tool:
			answered[m.ToolCallID] = true
		case ai:
			return unanswered(m.ToolCalls, answered)
		case human:
			return nil
		}
	}
	return nil
}

func unanswered(calls []toolCall, answered map[string]bool) []toolCall {
	var open []toolCall
	for _, call := range calls {
		if !answered[call.ID] {
			open = append(open, call)
		}
	}
	return open
}
