package providers

import (
	"encoding/json"
	"net/http"
)

// messages serves the interface of Anthropic.
func messages(w *writer, body []byte) error {
	var request struct {
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			tool

			Input json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Choice json.RawMessage `json:"tool_choice"`
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"output_format"`
		Config struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	c := conversation{id: number(body), choice: choice(request.Choice), format: request.Format.Schema}
	if c.format == nil {
		c.format = request.Config.Format.Schema
	}
	c.turns = append(c.turns, turn{role: "system", text: text(request.System)})
	for _, one := range request.Messages {
		var parts []struct {
			Type string `json:"type"`
		}
		next := turn{role: one.Role, text: text(one.Content)}
		if json.Unmarshal(one.Content, &parts) == nil {
			for _, part := range parts {
				switch part.Type {
				case "tool_use":
					next.calls++
				case "tool_result":
					next.role = "tool"
				}
			}
		}
		c.turns = append(c.turns, next)
	}
	for _, one := range request.Tools {
		if one.Input != nil { // the provider runs its own tools, which have no schema
			c.tools = append(c.tools, tool{one.Name, one.Description, one.Input})
		}
	}
	return sayMessage(w, c.answer(), request.Stream)
}

// sayMessage sends a reply, whole or in a stream.
func sayMessage(w *writer, r reply, stream bool) error {
	block, begun, reason := object{"type": "text", "text": r.text()}, object{"type": "text", "text": ""}, "end_turn"
	if r.call != nil {
		block = object{"type": "tool_use", "id": r.call.id, "name": r.call.name, "input": json.RawMessage(r.call.arguments)}
		begun, reason = object{"type": "tool_use", "id": r.call.id, "name": r.call.name, "input": object{}}, "tool_use"
	}
	message := func(reason any, content ...object) object {
		return object{
			"id": "msg_" + r.id, "type": "message", "role": "assistant", "model": model, "content": append([]object{}, content...), "stop_reason": reason, "stop_sequence": nil,
			"usage": object{"input_tokens": 1, "output_tokens": len(r.words)},
		}
	}
	if !stream {
		w.whole(http.StatusOK, message(reason, block))
		return nil
	}
	if err := w.event("message_start", object{"type": "message_start", "message": message(nil)}); err != nil {
		return err
	}
	if err := w.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": begun}); err != nil {
		return err
	}
	delta := func(delta object) error {
		return w.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	}
	if r.call != nil {
		if err := delta(object{"type": "input_json_delta", "partial_json": r.call.arguments}); err != nil {
			return err
		}
	}
	if err := w.speak(r, func(word string) error { return delta(object{"type": "text_delta", "text": word}) }); err != nil {
		return err
	}
	if err := w.event("content_block_stop", object{"type": "content_block_stop", "index": 0}); err != nil {
		return err
	}
	ended := object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": len(r.words)}}
	if err := w.event("message_delta", ended); err != nil {
		return err
	}
	return w.event("message_stop", object{"type": "message_stop"})
}
