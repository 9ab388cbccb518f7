package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// Machine is a checked state machine. It does not change after Parse and may be used concurrently.
type Machine struct {
	Comment string
	StartAt string
	// Timeout is how long an execution may take. Zero is no limit.
	Timeout Seconds           `json:"TimeoutSeconds"`
	States  map[string]*State `json:"-"`
}

// Links are the names outside a definition to which it may refer.
type Links struct {
	// Substitutions replace ${Name} in states.
	Substitutions map[string]string
	// Function reports whether a Task may call the function of that name.
	Function func(name string) bool
}

// Seconds is a time that is written as a number of seconds, from 1 to 99,999,999.
type Seconds time.Duration

// maxSeconds is the service's limit for Wait and TimeoutSeconds.
const maxSeconds = 99999999

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var number int64
	if err := json.Unmarshal(text, &number); err != nil || number < 1 || number > maxSeconds {
		return fmt.Errorf("%s is not a number of seconds from 1 to %d", text, maxSeconds)
	}
	*s = Seconds(number) * Seconds(time.Second)
	return nil
}

// problems are what is wrong with a definition.
type problems []error

func (p *problems) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// Parse reads and checks a definition. The error lists the problems by machine and state.
func Parse(name string, definition []byte, links Links) (*Machine, error) {
	machine, problems := parse(definition, links)
	for i, problem := range problems {
		problems[i] = fmt.Errorf("machine %s%w", name, problem)
	}
	return machine, errors.Join(problems...)
}

// definition is a machine whose states are not read yet.
type definition struct {
	*Machine
	States map[string]json.RawMessage
}

// parse returns each problem with its place in the machine before it.
func parse(text []byte, links Links) (*Machine, problems) {
	m := &Machine{States: map[string]*State{}}
	written := definition{Machine: m}
	err := strict(text, &written)
	if err == nil {
		err = checkNames(json.NewDecoder(bytes.NewReader(text)))
	}
	if err != nil {
		return m, problems{fmt.Errorf(": decode JSON: %w", err)}
	}
	var all problems
	for _, name := range slices.Sorted(maps.Keys(written.States)) {
		state, wrong := parseState(name, written.States[name], links)
		m.States[name] = state
		for _, problem := range wrong {
			all.refuse(true, ", state %s: %w", name, problem)
		}
	}
	if len(all) == 0 {
		m.checkTargets(&all)
	}
	return m, all
}

// checkTargets refuses the names that no state has, and the states that no execution can reach.
func (m *Machine) checkTargets(p *problems) {
	p.refuse(m.States[m.StartAt] == nil, ": StartAt: there is no state %q", m.StartAt)
	reached := map[string]bool{}
	for pending := []string{m.StartAt}; len(pending) > 0; pending = pending[1:] {
		state := m.States[pending[0]]
		if state == nil || reached[state.Name] {
			continue
		}
		reached[state.Name] = true
		for _, target := range state.targets() {
			p.refuse(m.States[target] == nil, ", state %s: there is no state %q", state.Name, target)
			pending = append(pending, target)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.States)) {
		p.refuse(!reached[name], ", state %s: no state leads here", name)
	}
}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute replaces each ${Name} in the text of a state.
func (l Links) substitute(text []byte) (replaced []byte, err error) {
	replaced = placeholder.ReplaceAllFunc(text, func(match []byte) []byte {
		name := string(match[2 : len(match)-1])
		value, ok := l.Substitutions[name]
		if !ok {
			err = fmt.Errorf("the substitution ${%s} is not supplied", name)
		}
		quoted := Encode(value)
		return quoted[1 : len(quoted)-1]
	})
	return replaced, err
}
