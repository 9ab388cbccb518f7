package asl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/slipway-run/slipway/internal/base/clock"
)

// Context is the context object that paths beginning with $$ read.
type Context struct {
	Machine       string
	ExecutionID   string
	ExecutionName string
	Input         any
	Started       time.Time
	State         string
	Entered       time.Time
	RetryCount    int
}

// contextFields are the parts of the context object that are implemented. Only after
// Execution.Input may a path have more steps.
var contextFields = map[string]func(*Context) any{
	"Execution.Id":        func(c *Context) any { return c.ExecutionID },
	"Execution.Name":      func(c *Context) any { return c.ExecutionName },
	executionInput:        func(c *Context) any { return c.Input },
	"Execution.StartTime": func(c *Context) any { return clock.Format(c.Started) },
	"State.Name":          func(c *Context) any { return c.State },
	"State.EnteredTime":   func(c *Context) any { return clock.Format(c.Entered) },
	"State.RetryCount":    func(c *Context) any { return json.Number(strconv.Itoa(c.RetryCount)) },
	"StateMachine.Name":   func(c *Context) any { return c.Machine },
}

const executionInput = "Execution.Input"

// path selects one value of the data, or of the context object when context is set.
type path struct {
	text    string
	context func(*Context) any
	steps   []step
}

// step goes to a member of an object, or to an element of an array when name is nil.
type step struct {
	name  *string
	index int
}

// compilePath reads a Reference Path, or a path into the context object.
func compilePath(text string) (*path, error) {
	rest, inContext := strings.CutPrefix(text, "$$")
	if !inContext {
		var ok bool
		if rest, ok = strings.CutPrefix(text, "$"); !ok {
			return nil, fmt.Errorf("path %q: a path begins with $", text)
		}
	}
	steps, err := compileSteps(rest)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", text, err)
	}
	p := &path{text: text, steps: steps}
	if inContext {
		return p, p.enterContext()
	}
	return p, nil
}

// enterContext turns the first two steps into the accessor of a context field.
func (p *path) enterContext() error {
	field := ""
	if len(p.steps) >= 2 && p.steps[0].name != nil && p.steps[1].name != nil {
		field = *p.steps[0].name + "." + *p.steps[1].name
	}
	read, ok := contextFields[field]
	if !ok || field != executionInput && len(p.steps) > 2 {
		return fmt.Errorf("path %q: of the context object only %s are implemented",
			p.text, strings.Join(slices.Sorted(maps.Keys(contextFields)), ", "))
	}
	p.context, p.steps = read, p.steps[2:]
	return nil
}

var errNotReference = errors.New("only paths of the form $.name['name'][0] are implemented")

// compileSteps reads the part of a path after the $.
func compileSteps(rest string) ([]step, error) {
	var steps []step
	for rest != "" {
		var s step
		var err error
		switch {
		case strings.HasPrefix(rest, "['"):
			s, rest, err = quotedStep(rest[2:])
		case rest[0] == '[':
			s, rest, err = indexStep(rest[1:])
		case rest[0] == '.':
			s, rest, err = nameStep(rest[1:])
		default:
			err = errNotReference
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func nameStep(rest string) (step, string, error) {
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.In(r, unicode.L, unicode.M, unicode.N)
	})
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return step{}, "", errNotReference
	}
	name := rest[:end]
	return step{name: &name}, rest[end:], nil
}

func quotedStep(rest string) (step, string, error) {
	name, rest, ok := strings.Cut(rest, "']")
	if !ok || name == "" || strings.ContainsAny(name, `'\`) {
		return step{}, "", errNotReference
	}
	return step{name: &name}, rest, nil
}

func indexStep(rest string) (step, string, error) {
	digits, rest, ok := strings.Cut(rest, "]")
	index, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return step{}, "", errNotReference
	}
	return step{index: int(index)}, rest, nil
}

// find returns the selected value, and whether there is such a value.
func (p *path) find(data any, c *Context) (any, bool) {
	if p.context != nil {
		data = p.context(c)
	}
	for _, s := range p.steps {
		var ok bool
		if data, ok = s.enter(data); !ok {
			return nil, false
		}
	}
	return data, true
}

// get is find for a value that must exist.
func (p *path) get(data any, c *Context) (any, error) {
	value, ok := p.find(data, c)
	if !ok {
		return nil, runtimeError("The path '%s' selects nothing.", p.text)
	}
	return value, nil
}

func (s step) enter(data any) (any, bool) {
	if s.name != nil {
		object, _ := data.(map[string]any)
		value, ok := object[*s.name]
		return value, ok
	}
	array, _ := data.([]any)
	if s.index >= len(array) {
		return nil, false
	}
	return array[s.index], true
}

// with returns data with value at the end of the steps. It copies the parts that it changes,
// because data may be shared.
func with(data any, steps []step, value any) (any, error) {
	if len(steps) == 0 {
		return value, nil
	}
	inner, _ := steps[0].enter(data)
	if inner == nil && len(steps) > 1 {
		inner = map[string]any{}
	}
	changed, err := with(inner, steps[1:], value)
	if err != nil {
		return nil, err
	}
	return steps[0].replace(data, changed)
}

func (s step) replace(data, value any) (any, error) {
	switch data := data.(type) {
	case map[string]any:
		if s.name != nil {
			changed := make(map[string]any, len(data)+1)
			maps.Copy(changed, data)
			changed[*s.name] = value
			return changed, nil
		}
	case []any:
		if s.name == nil && s.index < len(data) {
			changed := slices.Clone(data)
			changed[s.index] = value
			return changed, nil
		}
	}
	return nil, &Error{Name: ErrorResultPathMatchFailure, Cause: "The result path does not fit the state's input."}
}
