package asl

import (
	"encoding/json"
)

// Type is the kind of a state.
type Type string

const (
	Task    Type = "Task"
	Choice  Type = "Choice"
	Wait    Type = "Wait"
	Pass    Type = "Pass"
	Succeed Type = "Succeed"
	Fail    Type = "Fail"
)

// State is one state of a machine. Its methods only compute. Their data is a value that Decode
// made, and is never changed.
type State struct {
	Name string
	Type Type
	// Next names the next state. It is "" when the execution ends here. A Choice has no Next:
	// see Choose.
	Next string
	// Task is set when Type is Task.
	Task *TaskDetail
	// Failure is set when Type is Fail.
	Failure *Error

	input, output selector
	parameters    template
	results       template
	result        template
	resultPath    resultPath
	rules         []rule
	defaultNext   string
	deadline      deadline
	targets       []target
}

// target is a state that a field leads to.
type target struct{ field, state string }

func parseState(name string, f *fields, links Links) *State {
	s := &State{Name: name, Type: Type(f.requiredText("Type"))}
	f.text("Comment")
	f.constant("QueryLanguage", "JSONPath")
	switch s.Type {
	case Task:
		s.parseFlow(f)
		s.parseParameters(f)
		s.parseTask(f, links)
		s.parseResultPath(f)
		s.parseNext(f)
	case Choice:
		s.parseFlow(f)
		s.parseChoice(f)
	case Wait:
		s.parseFlow(f)
		s.parseWait(f)
		s.parseNext(f)
	case Pass:
		s.parseFlow(f)
		s.parseParameters(f)
		s.parsePass(f)
		s.parseResultPath(f)
		s.parseNext(f)
	case Succeed:
		s.parseFlow(f)
	case Fail:
		s.Failure = &Error{Name: f.text("Error"), Cause: f.text("Cause")}
	case "": // refused as missing
		return s
	default:
		f.scope.in("Type").refuse("%q is not implemented", s.Type)
		return s
	}
	f.done()
	return s
}

// parseNext takes Next or End. Exactly one of the two must be present.
func (s *State) parseNext(f *fields) {
	end, hasEnd := f.take("End")
	_, hasNext := f.values["Next"]
	switch {
	case hasEnd && string(end) != "true":
		f.scope.in("End").refuse("only true is allowed")
	case hasEnd == hasNext:
		f.scope.in("Next").refuse("exactly one of Next and End is required")
	}
	if hasNext {
		s.Next = f.requiredText("Next")
		s.leadTo("Next", s.Next)
	}
}

// leadTo notes a state that a field names. An empty name was refused before.
func (s *State) leadTo(field, state string) {
	if state != "" {
		s.targets = append(s.targets, target{field, state})
	}
}

// parseFlow takes the two fields that select parts of a state's input and of its output.
func (s *State) parseFlow(f *fields) {
	s.input = f.selector("InputPath")
	s.output = f.selector("OutputPath")
}

func (s *State) parseParameters(f *fields) {
	if text, ok := f.take("Parameters"); ok {
		s.parameters = templateAt(f.scope.in("Parameters"), text)
	}
}

func (s *State) parsePass(f *fields) {
	text, ok := f.take("Result")
	if !ok {
		return
	}
	value, err := Decode(text)
	if err != nil {
		f.scope.in("Result").refuse("%v", err)
	}
	s.result = literal{value}
}

func (s *State) parseResultPath(f *fields) { s.resultPath = f.resultPath() }

// Input computes the data that the state works on.
func (s *State) Input(data any, c *Context) (any, error) {
	return s.input.apply(data, c)
}

// Arguments computes the data that a Task passes to its function, or a Pass to its output.
func (s *State) Arguments(data any, c *Context) (any, error) {
	input, err := s.Input(data, c)
	if err != nil || s.parameters == nil {
		return input, err
	}
	return s.parameters.build(input, c)
}

// Output computes the output of a Choice, Wait or Succeed.
func (s *State) Output(data any, c *Context) (any, error) {
	input, err := s.Input(data, c)
	if err != nil {
		return nil, err
	}
	return s.output.apply(input, c)
}

// PassOutput computes the output of a Pass.
func (s *State) PassOutput(data any, c *Context) (any, error) {
	result, err := s.Arguments(data, c)
	if err != nil {
		return nil, err
	}
	if s.result != nil {
		if result, err = s.result.build(nil, c); err != nil {
			return nil, err
		}
	}
	return s.place(data, result, c)
}

// TaskOutput computes the output of a Task after its resource has answered with the result.
func (s *State) TaskOutput(data, result any, c *Context) (any, error) {
	if s.results != nil {
		var err error
		if result, err = s.results.build(result, c); err != nil {
			return nil, err
		}
	}
	return s.place(data, result, c)
}

func (s *State) place(data, result any, c *Context) (any, error) {
	combined, err := s.resultPath.put(data, result)
	if err != nil {
		return nil, err
	}
	return s.output.apply(combined, c)
}

// selector is an InputPath or OutputPath: an absent one selects all of the data, null an empty
// object.
type selector struct {
	path *path
	none bool
}

func (f *fields) selector(name string) selector {
	text, ok := f.take(name)
	if !ok {
		return selector{}
	}
	if isNull(text) {
		return selector{none: true}
	}
	p, err := pathOf(text)
	if err != nil {
		f.scope.in(name).refuse("%v", err)
	}
	return selector{path: p}
}

func (s selector) apply(data any, c *Context) (any, error) {
	switch {
	case s.none:
		return map[string]any{}, nil
	case s.path == nil:
		return data, nil
	default:
		return s.path.get(data, c)
	}
}

// resultPath says where in a state's data its result goes: if absent, in place of the data; if
// null, nowhere.
type resultPath struct {
	steps []step
	none  bool
}

func (f *fields) resultPath() resultPath {
	text, ok := f.take("ResultPath")
	if !ok {
		return resultPath{}
	}
	if isNull(text) {
		return resultPath{none: true}
	}
	p, err := referenceOf(text)
	if err != nil {
		f.scope.in("ResultPath").refuse("%v", err)
		return resultPath{}
	}
	return resultPath{steps: p.steps}
}

func (r resultPath) put(data, result any) (any, error) {
	if r.none {
		return data, nil
	}
	return with(data, r.steps, result)
}

// referenceOf reads a path that must stay in the data.
func referenceOf(text json.RawMessage) (*path, error) {
	p, err := pathOf(text)
	if err == nil && p.context != nil {
		return nil, errNotReference
	}
	return p, err
}
