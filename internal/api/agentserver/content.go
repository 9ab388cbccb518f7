package agentserver

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/record/record"
)

// content is the sum of the chunks of a message: a text, or blocks. Blocks with the same index
// belong together.
type content struct {
	text   strings.Builder
	blocks []map[string]json.RawMessage
	isList bool
	// known says that the content of a chunk had a known form.
	known bool
}

// add appends the content of a chunk. It skips a content whose form is not known.
func (c *content) add(raw json.RawMessage) {
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		c.known = true
		c.addText(whole)
		return
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return
	}
	c.known = true
	if !c.isList && c.text.Len() > 0 {
		c.blocks = []map[string]json.RawMessage{textBlock(c.text.String())}
	}
	c.isList = true
	for _, part := range parts {
		var text string
		var block map[string]json.RawMessage
		if json.Unmarshal(part, &text) == nil {
			c.addText(text)
		} else if json.Unmarshal(part, &block) == nil && block != nil {
			c.blocks = mergeBlock(c.blocks, block)
		}
	}
}

// addText appends to the text; if the content has blocks, to the last block if that is a text
// block without an index, otherwise as a new block.
func (c *content) addText(text string) {
	if !c.isList {
		c.text.WriteString(text)
		return
	}
	if text == "" {
		return
	}
	if last := len(c.blocks) - 1; last >= 0 && c.blocks[last]["text"] != nil && !numbered(c.blocks[last]) {
		mergeMembers(c.blocks[last], textBlock(text))
		return
	}
	c.blocks = append(c.blocks, textBlock(text))
}

func textBlock(text string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"type": record.Encode("text"), "text": record.Encode(text)}
}

// json returns the content in the form that a message has, nil if no content had a known form.
func (c *content) json() json.RawMessage {
	if !c.known {
		return nil
	}
	if !c.isList {
		return record.Encode(c.text.String())
	}
	return record.Encode(append([]map[string]json.RawMessage{}, c.blocks...))
}

// numbered reports whether a block, or a piece of a tool call, has the index of the whole that
// it belongs to. Some providers send an index that is null.
func numbered(block map[string]json.RawMessage) bool {
	return len(block["index"]) > 0 && string(block["index"]) != "null"
}

// mergeBlock adds a block to the block with the same index, or after all other blocks.
func mergeBlock(blocks []map[string]json.RawMessage, block map[string]json.RawMessage) []map[string]json.RawMessage {
	for _, other := range blocks {
		if numbered(block) && string(other["index"]) == string(block["index"]) {
			mergeMembers(other, block)
			return blocks
		}
	}
	return append(blocks, block)
}

// growing are the members of blocks and tool calls that arrive in pieces; all other members
// arrive whole.
var growing = map[string]bool{"text": true, "args": true, "input": true, "thinking": true, "reasoning": true, "signature": true, "partial_json": true}

func mergeMembers(into, from map[string]json.RawMessage) {
	for name, value := range from {
		var before, more string
		if growing[name] && json.Unmarshal(into[name], &before) == nil && json.Unmarshal(value, &more) == nil {
			into[name] = record.Encode(before + more)
		} else if into[name] == nil || string(value) != "null" {
			into[name] = value
		}
	}
}

// mergeCalls adds the pieces of tool calls in a chunk to the pieces before.
func mergeCalls(before, raw json.RawMessage) json.RawMessage {
	var calls, pieces []map[string]json.RawMessage
	if json.Unmarshal(raw, &pieces) != nil || (len(before) > 0 && json.Unmarshal(before, &calls) != nil) {
		return before
	}
	for _, piece := range pieces {
		calls = mergeBlock(calls, piece)
	}
	if calls == nil {
		return raw
	}
	return record.Encode(calls)
}
