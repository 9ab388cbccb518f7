package a2a

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/a2aproject/a2a-go/a2a"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// inputOfParts returns the input of a graph for a message: the text and files of the message are
// a message of the graph, and its data are members of the input.
func inputOfParts(message *a2a.Message) (map[string]any, error) {
	input := map[string]any{}
	var blocks []map[string]any
	for _, part := range message.Parts {
		switch part := part.(type) {
		case a2a.TextPart:
			blocks = append(blocks, map[string]any{"type": "text", "text": part.Text})
		case a2a.FilePart:
			blocks = append(blocks, blockOf(part.File))
		case a2a.DataPart:
			maps.Copy(input, part.Data)
		}
	}
	if len(blocks) > 0 {
		said := map[string]any{"type": "human", "id": message.ID, "content": blocks}
		if len(blocks) == 1 && blocks[0]["type"] == "text" {
			said["content"] = blocks[0]["text"]
		}
		input["messages"] = []any{said}
	}
	if len(input) == 0 {
		return nil, fmt.Errorf("%w: message.parts: must have a text, a file or data", a2a.ErrInvalidParams)
	}
	return input, nil
}

// blockOf returns the content of a graph's message for a file. The server does not fetch files.
func blockOf(file a2a.FilePartContent) map[string]any {
	block := map[string]any{}
	var about a2a.FileMeta
	switch file := file.(type) {
	case a2a.FileBytes:
		block["base64"], about = file.Bytes, file.FileMeta
	case a2a.FileURI:
		block["url"], about = file.URI, file.FileMeta
	}
	switch kind, _, _ := strings.Cut(about.MimeType, "/"); kind {
	case "image", "audio", "video":
		block["type"] = kind
	default:
		block["type"] = "file"
	}
	if about.MimeType != "" {
		block["mime_type"] = about.MimeType
	}
	if about.Name != "" {
		block["extras"] = map[string]any{"filename": about.Name}
	}
	return block
}

// answerOf returns the answer to a question: the member resume of the message's data, or its
// data, or its text.
func answerOf(message *a2a.Message) any {
	for _, part := range message.Parts {
		if data, ok := part.(a2a.DataPart); ok {
			if answer, ok := data.Data["resume"]; ok {
				return answer
			}
			return data.Data
		}
	}
	var text []string
	for _, part := range message.Parts {
		if said, ok := part.(a2a.TextPart); ok {
			text = append(text, said.Text)
		}
	}
	return strings.Join(text, "\n")
}

// leftValues are the values that a run has left behind.
type leftValues map[string]json.RawMessage

// complete adds to a task the outcome of its run.
func (v leftValues) complete(task *a2a.Task, r taskRun, history *int) error {
	var said []graphMessage
	if json.Unmarshal(v["messages"], &said) != nil {
		said = nil // the graph uses the name for something else
	}
	task.History = historyOf(task, said, history)
	var failed struct{ Error, Message string }
	if json.Unmarshal(v["__error__"], &failed) == nil {
		task.Status.State = a2a.TaskStateFailed
		task.Status.Message = a2a.NewMessageForTask(a2a.MessageRoleAgent, task, a2a.TextPart{Text: failed.Error + ": " + failed.Message})
		return nil
	}
	if r.Status != run.Success {
		return nil
	}
	if questions, ok := v[run.MemberQuestions]; ok {
		var interrupts []map[string]any
		if err := json.Unmarshal(questions, &interrupts); err != nil {
			return fmt.Errorf("read the questions of a run: %w", err)
		}
		task.Status.State = a2a.TaskStateInputRequired
		artifact := &a2a.Artifact{ID: a2a.ArtifactID(r.ID), Name: "question", Description: "The agent waits for an input."}
		for _, question := range interrupts {
			artifact.Parts = append(artifact.Parts, a2a.DataPart{Data: question})
		}
		task.Artifacts = append(task.Artifacts, artifact)
		return nil
	}
	task.Artifacts = append(task.Artifacts, &a2a.Artifact{ID: a2a.ArtifactID(r.ID), Name: "answer", Parts: v.answer(said)})
	return nil
}

// answer returns the last answer in the values: the last message of the graph after the last
// question, or all values of a graph without messages.
func (v leftValues) answer(said []graphMessage) a2a.ContentParts {
	for i := len(said) - 1; i >= 0 && said[i].role() != a2a.MessageRoleUser; i-- {
		if parts := said[i].parts(); said[i].role() == a2a.MessageRoleAgent && len(parts) > 0 {
			return parts
		}
	}
	all := map[string]any{}
	for name, value := range v {
		if name != "messages" {
			all[name] = value
		}
	}
	return a2a.ContentParts{a2a.DataPart{Data: all}}
}

// graphMessage is a message of a graph.
type graphMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// role returns who has said the message. Clients do not see the messages of tools and systems.
func (m graphMessage) role() a2a.MessageRole {
	switch m.Type {
	case "human", "HumanMessageChunk":
		return a2a.MessageRoleUser
	case "ai", "AIMessageChunk":
		return a2a.MessageRoleAgent
	}
	return a2a.MessageRoleUnspecified
}

// parts returns the text and files of the message. Other content, such as calls of tools and
// thoughts, concerns the graph only.
func (m graphMessage) parts() (parts a2a.ContentParts) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		if text != "" {
			parts = append(parts, a2a.TextPart{Text: text})
		}
		return parts
	}
	var blocks []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Base64   string `json:"base64"`
		URL      string `json:"url"`
		MimeType string `json:"mime_type"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil {
		return nil
	}
	for _, block := range blocks {
		switch about := (a2a.FileMeta{MimeType: block.MimeType}); {
		case block.Type == "text" && block.Text != "":
			parts = append(parts, a2a.TextPart{Text: block.Text})
		case block.Base64 != "":
			parts = append(parts, a2a.FilePart{File: a2a.FileBytes{FileMeta: about, Bytes: block.Base64}})
		case block.URL != "":
			parts = append(parts, a2a.FilePart{File: a2a.FileURI{FileMeta: about, URI: block.URL}})
		}
	}
	return parts
}

// historyOf returns the newest messages of the context that clients see; all of them if limit is
// nil.
func historyOf(task *a2a.Task, said []graphMessage, limit *int) []*a2a.Message {
	history := []*a2a.Message{}
	for _, m := range said {
		if parts := m.parts(); m.role() != a2a.MessageRoleUnspecified && len(parts) > 0 {
			history = append(history, &a2a.Message{ID: m.ID, Role: m.role(), ContextID: task.ContextID, TaskID: task.ID, Parts: parts})
		}
	}
	if limit != nil {
		history = history[max(0, len(history)-*limit):]
	}
	return history
}
