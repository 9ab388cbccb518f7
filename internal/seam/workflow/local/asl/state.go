package asl

import "time"

// Type is the kind of a state.
type Type string

const (
	Task    Type = "Task"
	Choice  Type = "Choice"
	Wait    Type = "Wait"
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

	rules       []rule
	defaultNext string
	wait        time.Duration
	// until is nil for a Wait that takes a fixed time.
	until   path
	targets []target
}

// target is a state that a field leads to.
type target struct {
	at    scope
	state string
}

func parseState(name string, f *fields, links Links) *State {
	f.require("Type")
	s := &State{Name: name, Type: Type(f.text("Type"))}
	f.text("Comment")
	switch s.Type {
	case Task:
		s.parseTask(f, links)
		s.parseNext(f)
	case Choice:
		s.parseChoice(f)
	case Wait:
		s.parseWait(f)
		s.parseNext(f)
	case Succeed:
	case Fail:
		s.Failure = &Error{Name: f.text("Error"), Cause: f.text("Cause")}
	case "": // refused as missing
		return s
	default:
		f.scope.in("Type").refuse("%q is not supported; supported are Choice, Fail, Succeed, Task, Wait", s.Type)
		return s
	}
	f.done()
	return s
}

// parseNext takes Next or End. Exactly one of the two must be present.
func (s *State) parseNext(f *fields) {
	_, hasNext := f.values["Next"]
	end, hasEnd := f.take("End")
	switch {
	case hasEnd && string(end) != "true":
		f.scope.in("End").refuse("only true is allowed")
	case hasEnd == hasNext:
		f.scope.in("Next").refuse("exactly one of Next and End is required")
	}
	s.Next = s.leadTo(f, "Next")
}

// leadTo takes a field that names a state, and notes where it leads.
func (s *State) leadTo(f *fields, field string) string {
	state := f.text(field)
	if state != "" {
		s.targets = append(s.targets, target{f.scope.in(field), state})
	}
	return state
}
