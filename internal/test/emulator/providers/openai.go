package providers

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"net/http"
)

// chat serves chat completions.
func chat(w *writer, body []byte) error {
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Calls   []any           `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function tool `json:"function"`
		} `json:"tools"`
		Functions []tool          `json:"functions"`
		Choice    json.RawMessage `json:"tool_choice"`
		Format    struct {
			Type   string `json:"type"`
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	c := conversation{id: number(body), choice: choice(request.Choice), tools: request.Functions, format: request.Format.Schema.Schema}
	if request.Format.Type == "json_object" {
		c.format = json.RawMessage(`{"type": "object"}`)
	}
	for _, one := range request.Messages {
		c.turns = append(c.turns, turn{one.Role, text(one.Content), len(one.Calls)})
	}
	for _, one := range request.Tools {
		c.tools = append(c.tools, one.Function)
	}
	r := c.answer()
	message, reason := object{"role": "assistant", "content": r.text()}, "stop"
	if r.call != nil {
		reason = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []object{{
			"index": 0, "id": r.call.id, "type": "function", "function": object{"name": r.call.name, "arguments": r.call.arguments},
		}}}
	}
	usage := object{"prompt_tokens": 1, "completion_tokens": len(r.words), "total_tokens": 1 + len(r.words)}
	if !request.Stream {
		w.whole(http.StatusOK, object{
			"id": "chatcmpl-" + r.id, "object": "chat.completion", "created": 1, "model": model, "usage": usage,
			"choices": []object{{"index": 0, "message": message, "finish_reason": reason}},
		})
		return nil
	}
	chunk := func(delta object, reason any, usage any) error {
		return w.event("", object{
			"id": "chatcmpl-" + r.id, "object": "chat.completion.chunk", "created": 1, "model": model, "usage": usage,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
		})
	}
	first := message
	if r.call == nil {
		first = object{"role": "assistant", "content": ""}
	}
	if err := chunk(first, nil, nil); err != nil {
		return err
	}
	if err := w.speak(r, func(word string) error { return chunk(object{"content": word}, nil, nil) }); err != nil {
		return err
	}
	if err := chunk(object{}, reason, usage); err != nil {
		return err
	}
	return w.event("", "[DONE]")
}

// choice reads the tool that a request chooses: a word, or an object that names the tool.
func choice(text json.RawMessage) string {
	var word string
	if json.Unmarshal(text, &word) == nil {
		if word == "any" {
			return "required"
		}
		return word
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch {
	case json.Unmarshal(text, &named) != nil:
		return "auto"
	case named.Function.Name != "":
		return named.Function.Name
	case named.Name != "":
		return named.Name
	default:
		return choice(json.RawMessage(encode(named.Type)))
	}
}

// responses serves the newer interface of OpenAI.
func responses(w *writer, body []byte) error {
	var request struct {
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []tool          `json:"tools"`
		Choice       json.RawMessage `json:"tool_choice"`
		Text         struct {
			Format struct {
				Type   string          `json:"type"`
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"text"`
		Stream bool `json:"stream"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	c := conversation{id: number(body), choice: choice(request.Choice), tools: request.Tools, format: request.Text.Format.Schema}
	c.turns = append(c.turns, turn{role: "system", text: request.Instructions})
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
	}
	if json.Unmarshal(request.Input, &items) != nil {
		c.turns = append(c.turns, turn{role: "user", text: text(request.Input)})
	}
	for _, item := range items {
		one := turn{role: item.Role, text: text(item.Content)}
		switch item.Type {
		case "function_call":
			one = turn{role: "assistant", calls: 1}
		case "function_call_output":
			one = turn{role: "tool", text: text(item.Output)}
		}
		c.turns = append(c.turns, one)
	}
	r := c.answer()
	item := object{"type": "message", "id": "msg_" + r.id, "role": "assistant", "status": "completed", "content": []object{part(r.text())}}
	if r.call != nil {
		item = object{"type": "function_call", "id": "fc_" + r.id, "status": "completed", "call_id": r.call.id, "name": r.call.name, "arguments": r.call.arguments}
	}
	response := func(status string, output ...object) object {
		return object{
			"id": "resp_" + r.id, "object": "response", "created_at": 1, "model": model, "status": status, "output": append([]object{}, output...),
			"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []any{},
			"usage": object{
				"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": len(r.words),
				"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 1 + len(r.words),
			},
		}
	}
	if !request.Stream {
		w.whole(http.StatusOK, response("completed", item))
		return nil
	}
	return streamResponse(w, r, item, response)
}

func part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func streamResponse(w *writer, r reply, item object, response func(status string, output ...object) object) error {
	sequence := 0
	send := func(name string, data object) error {
		data["type"], data["sequence_number"] = name, sequence
		sequence++
		return w.event(name, data)
	}
	sendAll := func(events ...object) error {
		for _, one := range events {
			name, _ := one["type"].(string)
			if err := send(name, one); err != nil {
				return err
			}
		}
		return nil
	}
	at := func(kind string, more object) object {
		more["type"], more["output_index"], more["item_id"] = kind, 0, item["id"]
		return more
	}
	begun := object{"type": item["type"], "id": item["id"], "status": "in_progress"}
	if r.call != nil {
		begun["call_id"], begun["name"], begun["arguments"] = r.call.id, r.call.name, ""
	} else {
		begun["role"], begun["content"] = "assistant", []any{}
	}
	err := sendAll(object{"type": "response.created", "response": response("in_progress")}, at("response.output_item.added", object{"item": begun}))
	if err != nil {
		return err
	}
	if r.call != nil {
		err = sendAll(
			at("response.function_call_arguments.delta", object{"delta": r.call.arguments}),
			at("response.function_call_arguments.done", object{"arguments": r.call.arguments, "name": r.call.name}),
		)
	} else {
		err = sendAll(at("response.content_part.added", object{"content_index": 0, "part": part("")}))
		if err == nil {
			err = w.speak(r, func(word string) error {
				return sendAll(at("response.output_text.delta", object{"content_index": 0, "delta": word, "logprobs": []any{}}))
			})
		}
		if err == nil {
			err = sendAll(
				at("response.output_text.done", object{"content_index": 0, "text": r.text(), "logprobs": []any{}}),
				at("response.content_part.done", object{"content_index": 0, "part": part(r.text())}),
			)
		}
	}
	if err != nil {
		return err
	}
	return sendAll(at("response.output_item.done", object{"item": item}), object{"type": "response.completed", "response": response("completed", item)})
}

// dimensions is the length of embeddings, unless a request asks for another one.
const dimensions = 1536

// embeddings serves vectors that depend on the text alone.
func embeddings(w *writer, body []byte) error {
	var request struct {
		Input      json.RawMessage `json:"input"`
		Dimensions int             `json:"dimensions"`
		Encoding   string          `json:"encoding_format"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	var inputs []json.RawMessage
	if json.Unmarshal(request.Input, &inputs) != nil {
		inputs = []json.RawMessage{request.Input}
	}
	if request.Dimensions == 0 {
		request.Dimensions = dimensions
	}
	data := []object{}
	for i, input := range inputs {
		vector := embed(input, request.Dimensions)
		one := object{"object": "embedding", "index": i, "embedding": vector}
		if request.Encoding == "base64" {
			var raw bytes.Buffer
			if err := binary.Write(&raw, binary.LittleEndian, vector); err != nil {
				return err
			}
			one["embedding"] = base64.StdEncoding.EncodeToString(raw.Bytes())
		}
		data = append(data, one)
	}
	w.whole(http.StatusOK, object{"object": "list", "model": model, "data": data, "usage": object{"prompt_tokens": 1, "total_tokens": 1}})
	return nil
}

// embed returns a vector whose few members other than 0 are chosen by the text.
func embed(text []byte, length int) []float32 {
	vector := make([]float32, length)
	for i := range 4 {
		hash := fnv.New32a()
		_, _ = hash.Write(append([]byte{byte(i)}, text...))
		vector[int(hash.Sum32()%uint32(length))] = 0.5
	}
	return vector
}
