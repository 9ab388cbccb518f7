package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// known is what the tool looks up and the model recognises.
var known = mustReadCities(citiesCSV)

// model is the scripted model: it asks the tool about the city of the last question, and answers
// when the tool has. Ids are new in each invocation, so that what an earlier attempt wrote of a
// message is never mixed with this one.
func (r *agentRun) model(ctx context.Context, messages []message) ([]message, []any, error) {
	id := "ai-" + rand.Text()
	if len(messages) > 0 && messages[len(messages)-1].Type == tool {
		return r.answer(ctx, id, messages)
	}
	return r.ask(id, messages)
}

// ask writes a message that calls the tool.
func (r *agentRun) ask(id string, messages []message) ([]message, []any, error) {
	var question string
	if len(messages) > 0 {
		question = string(messages[len(messages)-1].Content)
	}
	call := toolCall{Name: "weather", Args: map[string]any{"city": cityOf(question)}, ID: "call-" + rand.Text(), Type: "tool_call"}
	args, err := json.Marshal(call.Args)
	if err != nil {
		return nil, nil, err
	}
	piece := map[string]any{"name": call.Name, "args": string(args), "id": call.ID, "index": 0, "type": "tool_call_chunk"}
	if err := r.chunk(id, map[string]any{"tool_calls": []toolCall{call}, "tool_call_chunks": []any{piece}}); err != nil {
		return nil, nil, err
	}
	return []message{{Type: ai, ToolCalls: []toolCall{call}}}, []any{aiMessage(id, "", []toolCall{call})}, nil
}

// answer writes the final answer, token by token.
func (r *agentRun) answer(ctx context.Context, id string, messages []message) ([]message, []any, error) {
	text := answerText(messages, r.settings.AnswerWords)
	tokens := strings.SplitAfter(text, " ")
	for i, token := range tokens {
		if err := sleep(ctx, r.settings.TokenDelayMS); err != nil {
			return nil, nil, err
		}
		if err := r.chunk(id, map[string]any{"content": token}); err != nil {
			return nil, nil, err
		}
		if i+1 == (len(tokens)+1)/2 {
			r.crash()
		}
	}
	return []message{{Type: ai, Content: content(text)}}, []any{aiMessage(id, text, []toolCall{})}, nil
}

func aiMessage(id, text string, calls []toolCall) map[string]any {
	return map[string]any{
		"type": ai, "id": id, "content": text, "tool_calls": calls,
		"additional_kwargs": map[string]any{}, "response_metadata": map[string]any{},
	}
}

// answerText says what the tool messages at the end of the thread say, in as many words as were
// asked for.
func answerText(messages []message, count int) string {
	var found []string
	for i := len(messages) - 1; i >= 0 && messages[i].Type == tool; i-- {
		found = append([]string{string(messages[i].Content)}, found...)
	}
	text := "I have looked it up for you. " + strings.Join(found, ". ") +
		". This comes from the small table that this example agent ships with, so please do look out of the window before you leave the house."
	if count > 0 {
		return exactly(count, strings.Fields(text))
	}
	return text
}

// exactly cuts or repeats the words.
func exactly(count int, words []string) string {
	answer := make([]string, count)
	for i := range answer {
		answer[i] = words[i%len(words)]
	}
	return strings.Join(answer, " ")
}

// place finds the words after the last preposition, up to the end of the sentence or to a word of
// time.
var place = regexp.MustCompile(`(?i)^.*\b(?:in|at|for|of)\s+([^?!.,;]+?)\s*(?:\b(?:today|tonight|tomorrow|now|right now|please|like|this|next|on)\b.*)?(?:[?!.,;].*)?$`)

// longestCity bounds what the model hands to the tool as the name of a city that it does not know.
const longestCity = 80

// cityOf returns the city that a question is about: the last one that the model knows, or what
// stands where a city would stand.
func cityOf(question string) string {
	if city, ok := known.lastMention(question); ok {
		return city
	}
	question = strings.Join(strings.Fields(question), " ")
	if found := place.FindStringSubmatch(question); found != nil {
		question = found[1]
	}
	if letters := []rune(question); len(letters) > longestCity {
		question = string(letters[:longestCity])
	}
	return strings.Trim(question, " ?!.,;")
}

// callTools looks each city up. A city that is not in the table is an answer too, with the status
// "error".
func callTools(calls []toolCall) (added []message, update []any) {
	for _, call := range calls {
		text, status := lookUp(call)
		added = append(added, message{Type: tool, Content: content(text), ToolCallID: call.ID})
		update = append(update, map[string]any{
			"type": tool, "id": "tool-" + rand.Text(), "name": call.Name, "tool_call_id": call.ID, "content": text, "status": status,
			"additional_kwargs": map[string]any{}, "response_metadata": map[string]any{},
		})
	}
	return added, update
}

func lookUp(call toolCall) (text, status string) {
	if call.Name != "weather" {
		return fmt.Sprintf("There is no tool %q", call.Name), "error"
	}
	city, _ := call.Args["city"].(string)
	found, ok := known.find(city)
	if !ok {
		return fmt.Sprintf("I know no city called %q", city), "error"
	}
	return found.String(), "success"
}
