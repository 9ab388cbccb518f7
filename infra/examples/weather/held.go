package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// mostHeld bounds the bytes of the messages that are held, of all threads.
const mostHeld = 64 << 20

// held are the messages of threads as their last invocations had them, so that a long thread is not
// sent, and read, whole each time.
type held struct {
	mu   sync.Mutex
	of   map[string]conversation // by thread
	size int
}

// conversation are the messages of the invocation that base names.
type conversation struct {
	base     base
	messages []json.RawMessage
	size     int
}

type base struct {
	RunID   string `json:"run_id"`
	Attempt int    `json:"attempt"`
}

// patch is the part of `state.patch` that this agent reads: what became of the messages.
type patch struct {
	Set   map[string]json.RawMessage `json:"set"`
	Unset []string                   `json:"unset"`
	Lists struct {
		// Messages are the first of those before, and others behind them.
		Messages *struct {
			Keep   int               `json:"keep"`
			Append []json.RawMessage `json:"append"`
		} `json:"messages"`
	} `json:"lists"`
}

// apply returns the messages that follow those before, which stay as they are.
func (p patch) apply(before []json.RawMessage) (messages []json.RawMessage, err error) {
	if list := p.Lists.Messages; list != nil {
		if list.Keep < 0 || list.Keep > len(before) {
			return nil, fmt.Errorf("state.patch keeps %d messages of %d", list.Keep, len(before))
		}
		return append(before[:list.Keep:list.Keep], list.Append...), nil
	}
	if set, ok := p.Set["messages"]; ok {
		if err := json.Unmarshal(set, &messages); err != nil {
			return nil, fmt.Errorf("decode state.patch.set.messages: %w", err)
		}
		return messages, nil
	}
	if slices.Contains(p.Unset, "messages") {
		return nil, nil
	}
	return before, nil
}

// errNotHeld asks the caller for the whole state.
var errNotHeld = errors.New("the values of state.base are not held, or not those that state.patch is for")

// complete makes the messages of an invocation whole, and holds them. Its error is errNotHeld.
func (h *held) complete(in *invocation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if in.State.Base != nil {
		before, ok := h.of[in.ThreadID]
		if !ok || before.base != *in.State.Base {
			return errNotHeld
		}
		var err error
		if in.State.Values.Messages, err = in.State.Patch.apply(before.messages); err != nil {
			return fmt.Errorf("%w: %w", errNotHeld, err)
		}
	}
	h.keep(in.ThreadID, base{in.RunID, in.Attempt}, in.State.Values.Messages)
	return nil
}

// keep holds the messages of a thread. When they are too many, other threads make room.
func (h *held) keep(thread string, b base, messages []json.RawMessage) {
	now := conversation{base: b, messages: messages, size: len(thread)}
	for _, message := range messages {
		now.size += len(message) + 24 // its place in the list
	}
	if h.of == nil {
		h.of = map[string]conversation{}
	}
	h.size += now.size - h.of[thread].size
	h.of[thread] = now
	for other := range h.of {
		if h.size <= mostHeld {
			return
		}
		h.size -= h.of[other].size
		delete(h.of, other)
	}
}
