package run

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
)

// Input is the input of a run. It is JSON that any state can take: only NewInput makes an Input
// from the text of a client, and it checks the text. The zero Input is no input.
type Input struct{ raw json.RawMessage }

// NewInput checks a client's input; null is no input. Input that is not an object is the graph's
// own matter.
func NewInput(raw json.RawMessage) (Input, error) {
	if state.Present(raw) == nil {
		return Input{}, nil
	}
	if state.IsObject(raw) {
		if _, err := state.Coerce(raw, func() string { return "" }); err != nil {
			return Input{}, err
		}
	}
	return Input{raw}, nil
}

// JSON returns the input as the client sent it, nil if there is no input.
func (i Input) JSON() json.RawMessage { return i.raw }

// isObject reports whether the input is an update of the state.
func (i Input) isObject() bool { return state.IsObject(i.raw) }

// MarshalJSON implements json.Marshaler.
func (i Input) MarshalJSON() ([]byte, error) { return state.OrNull(i.raw), nil }

// UnmarshalJSON implements json.Unmarshaler. It reads an input that was checked before it was
// stored.
func (i *Input) UnmarshalJSON(stored []byte) error {
	if i.raw = nil; string(stored) != "null" {
		i.raw = slices.Clone(stored)
	}
	return nil
}
