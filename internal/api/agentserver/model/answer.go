package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// ShownState answers with a state, or the selected members of it. Values that are shown whole
// are written unchanged: they are the stored JSON, and may be large.
type ShownState struct {
	State    ThreadState
	Selected []string
}

// ShownStates answers with a list of states, or the selected members of each.
type ShownStates struct {
	States   []ThreadState
	Selected []string
}

const memberValues = "values"

// parts returns the answer's text in pieces, without a copy of the values.
func (s ShownState) parts() ([][]byte, error) {
	values := s.State.Values
	s.State.Values = nil
	text, err := json.Marshal(s.State)
	if err != nil {
		return nil, err
	}
	if len(s.Selected) > 0 {
		return s.some(text, values)
	}
	head, ok := bytes.CutSuffix(text, []byte(`"values":null}`))
	if !ok {
		return nil, errors.New("values are not the last member of a state")
	}
	return [][]byte{head, []byte(`"values":`), state.OrNull(values), []byte("}")}, nil
}

// some returns the selected members of the state whose text is given without its values.
func (s ShownState) some(text []byte, values json.RawMessage) ([][]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool {
		return name == memberValues || !slices.Contains(s.Selected, name)
	})
	if slices.Contains(s.Selected, memberValues) {
		head := bytes.TrimSuffix(record.Encode(members), []byte("}"))
		if len(members) > 0 {
			head = append(head, ',')
		}
		return [][]byte{head, []byte(`"values":`), state.OrNull(values), []byte("}")}, nil
	}
	if picked := s.pick(values); picked != nil {
		members[memberValues] = record.Encode(picked)
	}
	return [][]byte{record.Encode(members)}, nil
}

// pick returns the values that are selected by their names; nil if no name is selected.
func (s ShownState) pick(values json.RawMessage) map[string]json.RawMessage {
	var all, picked map[string]json.RawMessage
	for _, field := range s.Selected {
		name, ok := strings.CutPrefix(field, memberValues+".")
		if !ok {
			continue
		}
		if picked == nil {
			picked = map[string]json.RawMessage{}
			_ = json.Unmarshal(values, &all) // a value that is not an object has no names
		}
		if value, ok := all[name]; ok {
			picked[name] = value
		}
	}
	return picked
}

func (s ShownState) Write(w http.ResponseWriter) error {
	parts, err := s.parts()
	if err != nil {
		return err
	}
	return WriteJSON(w, parts...)
}

func (s ShownStates) Write(w http.ResponseWriter) error {
	all := [][]byte{[]byte("[")}
	for i, one := range s.States {
		parts, err := ShownState{one, s.Selected}.parts()
		if err != nil {
			return err
		}
		if i > 0 {
			all = append(all, []byte(","))
		}
		all = append(all, parts...)
	}
	return WriteJSON(w, append(all, []byte("]"))...)
}

// WriteJSON answers with JSON that is given in pieces.
func WriteJSON(w http.ResponseWriter, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(http.StatusOK)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
