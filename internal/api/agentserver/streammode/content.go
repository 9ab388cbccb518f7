package streammode

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
)

// content is the sum of the chunks of a message: a text, or blocks. Blocks with the same index
// belong together.
type content struct {
	text   strings.Builder
	blocks []any
	isList bool
	// known says that the content of a chunk had a known form.
	known bool
}

// add appends the content of a chunk. It skips a content whose form is not known.
func (c *content) add(raw json.RawMessage) {
	piece := state.DecodePiece(raw)
	whole, isText := piece.(string)
	parts, isList := piece.([]any)
	if !isText && !isList && string(raw) != "null" {
		return
	}
	c.known = true
	if !isList {
		c.addText(whole)
		return
	}
	if !c.isList && c.text.Len() > 0 {
		c.blocks = []any{textBlock(c.text.String())}
	}
	c.isList = true
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			c.addText(part)
		case map[string]any:
			c.blocks, _ = state.MergePieces(c.blocks, []any{part}).([]any)
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
	if last := len(c.blocks) - 1; last >= 0 {
		if block, ok := c.blocks[last].(map[string]any); ok && block["text"] != nil && !state.Indexed(block) {
			state.MergePieces(block, textBlock(text))
			return
		}
	}
	c.blocks = append(c.blocks, textBlock(text))
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// sum returns the content in the form that a message has, nil if no content had a known form.
func (c *content) sum() any {
	switch {
	case !c.known:
		return nil
	case !c.isList:
		return c.text.String()
	case c.blocks == nil:
		return []any{}
	}
	return c.blocks
}
