package asl

import (
	"encoding/json"
)

// condition decides on a Choice's input.
type condition func(input any, c *Context) (bool, error)

// rule leads to a state if its condition holds.
type rule struct {
	holds condition
	next  string
}

func (s *State) parseChoice(f *fields) {
	if _, ok := f.values["Choices"]; !ok {
		f.scope.in("Choices").refuse("missing")
	}
	for i, text := range f.array("Choices") {
		at := f.scope.in("Choices").at(i)
		r, ok := objectAt(at, text)
		if !ok {
			continue
		}
		next := r.requiredText("Next")
		s.leadTo(at.in("Next").field, next)
		s.rules = append(s.rules, rule{r.condition(), next})
	}
	if _, ok := f.values["Default"]; ok {
		s.defaultNext = f.requiredText("Default")
		s.leadTo("Default", s.defaultNext)
	}
}

// Choose returns the state of the first rule whose condition holds, or the default.
func (s *State) Choose(data any, c *Context) (string, error) {
	input, err := s.Input(data, c)
	if err != nil {
		return "", err
	}
	for _, r := range s.rules {
		holds, err := r.holds(input, c)
		if err != nil {
			return "", err
		}
		if holds {
			return r.next, nil
		}
	}
	if s.defaultNext == "" {
		// The language calls this error States.NoChoiceMatched. The service reports it with
		// this text.
		return "", runtimeError("Failed to transition out of the state. The state does not point to a next state.")
	}
	return s.defaultNext, nil
}

// condition takes the one operator of a rule: And, Or or Not, or a comparison with its
// Variable.
func (f *fields) condition() condition {
	f.text("Comment")
	var names []string
	for _, m := range f.list {
		if f.operator(m.name) != nil {
			names = append(names, m.name)
		}
	}
	if len(names) != 1 {
		f.scope.refuse("exactly one operator is required")
		for _, name := range append(names, "Variable") {
			f.take(name)
		}
		f.done()
		return nil
	}
	operand, _ := f.take(names[0])
	holds := f.operator(names[0])(f.scope.in(names[0]), operand)
	f.done()
	return holds
}

// operator returns the function that compiles the operand of a field. It returns nil if the
// field is not an operator.
func (f *fields) operator(name string) func(scope, json.RawMessage) condition {
	switch name {
	case "And":
		return func(at scope, text json.RawMessage) condition { return combinationAt(at, text, false) }
	case "Or":
		return func(at scope, text json.RawMessage) condition { return combinationAt(at, text, true) }
	case "Not":
		return notAt
	}
	compile, ok := comparisons[name]
	if !ok {
		return nil
	}
	return func(at scope, text json.RawMessage) condition { return f.comparison(at, compile, text) }
}

// comparison joins an operator with the rule's Variable.
func (f *fields) comparison(at scope, compile comparison, operand json.RawMessage) condition {
	variable := f.scope.in("Variable")
	raw, ok := f.take("Variable")
	if !ok {
		variable.refuse("missing")
		return nil
	}
	p, err := pathOf(raw)
	if err != nil {
		variable.refuse("%v", err)
		return nil
	}
	return compile(at, p, operand)
}

// combinationAt evaluates conditions in their order until one decides: a true condition for
// Or, a false condition for And.
func combinationAt(s scope, text json.RawMessage, decisive bool) condition {
	var conditions []condition
	for i, inner := range arrayAt(s, text) {
		conditions = append(conditions, conditionAt(s.at(i), inner))
	}
	return func(input any, c *Context) (bool, error) {
		for _, holds := range conditions {
			if is, err := holds(input, c); err != nil || is == decisive {
				return is, err
			}
		}
		return !decisive, nil
	}
}

func notAt(s scope, text json.RawMessage) condition {
	inner := conditionAt(s, text)
	return func(input any, c *Context) (bool, error) {
		is, err := inner(input, c)
		return !is && err == nil, err
	}
}

// conditionAt compiles a condition inside another, where Next is not allowed.
func conditionAt(s scope, text json.RawMessage) condition {
	f, ok := objectAt(s, text)
	if !ok {
		return nil
	}
	return f.condition()
}
