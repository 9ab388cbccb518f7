package asl

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// Machine is a checked state machine. It does not change after Parse and may be used concurrently.
type Machine struct {
	StartAt string
	// Timeout is how long an execution may take. Zero is no limit.
	Timeout time.Duration
	States  map[string]*State
}

// Links are the names outside a definition to which it may refer.
type Links struct {
	// Substitutions replace ${Name} in the fields of states.
	Substitutions map[string]string
	// Function reports whether a Task may call the function of that name.
	Function func(name string) bool
}

// maxSeconds is the service's limit for Wait and TimeoutSeconds.
const maxSeconds = 99999999

// Parse reads and checks a definition. The error lists every problem by machine, state and field.
func Parse(name string, definition []byte, links Links) (*Machine, error) {
	var problems []error
	s := scope{machine: name, substitutions: links.Substitutions, problems: &problems}
	machine := parseMachine(s, definition, links)
	return machine, errors.Join(problems...)
}

func parseMachine(s scope, definition []byte, links Links) *Machine {
	m := &Machine{States: map[string]*State{}}
	f, ok := objectAt(s, definition)
	if !ok {
		return m
	}
	f.text("Comment")
	m.Timeout = f.seconds("TimeoutSeconds")
	f.require("StartAt", "States")
	m.StartAt = f.text("StartAt")
	if states, ok := f.take("States"); ok {
		m.parseStates(s, states, links)
	}
	f.done()
	m.checkTargets(s)
	m.checkReached(s)
	return m
}

func (m *Machine) parseStates(s scope, text json.RawMessage, links Links) {
	list, err := members(text)
	if err != nil {
		s.in("States").refuse("%v", err)
	}
	for _, state := range list {
		at := s.of(state.name)
		if n := utf8.RuneCountInString(state.name); n == 0 || n > 80 {
			at.refuse("a state's name has 1 to 80 characters")
		}
		if f, ok := objectAt(at, state.value); ok {
			f.substitutes = true
			m.States[state.name] = parseState(state.name, f, links)
		}
	}
}

// checkTargets reports the names that fields refer to and that no state has.
func (m *Machine) checkTargets(s scope) {
	if _, ok := m.States[m.StartAt]; !ok && m.StartAt != "" {
		s.in("StartAt").refuse("there is no state %q", m.StartAt)
	}
	for _, name := range m.names() {
		for _, target := range m.States[name].targets {
			if _, ok := m.States[target.state]; !ok {
				target.at.refuse("there is no state %q", target.state)
			}
		}
	}
}

// checkReached reports the states that no execution can reach.
func (m *Machine) checkReached(s scope) {
	reached := map[string]bool{}
	pending := []string{m.StartAt}
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		state, ok := m.States[name]
		if !ok || reached[name] {
			continue
		}
		reached[name] = true
		for _, target := range state.targets {
			pending = append(pending, target.state)
		}
	}
	for _, name := range m.names() {
		if !reached[name] {
			s.of(name).refuse("no state leads here")
		}
	}
}

// names returns the states' names in a fixed order, so that problems are reported in a fixed
// order.
func (m *Machine) names() []string { return slices.Sorted(maps.Keys(m.States)) }

// seconds takes a positive number of seconds. It returns zero for an absent field.
func (f *fields) seconds(name string) time.Duration {
	return time.Duration(f.integer(name, 1, maxSeconds, 0)) * time.Second
}
