package asl

import (
	"reflect"
	"time"
	"unicode/utf8"
)

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
	Name    string `json:"-"`
	Type    Type
	Comment string
	// Next names the next state. It is "" when the execution ends here. A Choice has no Next:
	// see Choose.
	Next string
	End  bool
	// A state has the fields of its own type. The fields of the other types are zero.
	TaskDetail
	ChoiceDetail
	WaitDetail
	FailDetail
}

// ChoiceDetail holds the fields that only a Choice has.
type ChoiceDetail struct {
	Choices []struct {
		Comment      string
		Variable     path
		StringEquals string
		Next         string
	}
	Default string
}

// WaitDetail holds the fields that only a Wait has.
type WaitDetail struct {
	Seconds       *int64
	TimestampPath path
}

// FailDetail holds the fields that only a Fail has.
type FailDetail struct{ Error, Cause string }

// parseState reads and checks one state by itself.
func parseState(name string, text []byte, links Links) (*State, problems) {
	s := &State{Name: name}
	text, err := links.substitute(text)
	if err == nil {
		err = strict(text, s)
	}
	if err != nil {
		return s, problems{err}
	}
	var p problems
	n := utf8.RuneCountInString(name)
	p.refuse(n == 0 || n > 80, "a state's name has 1 to 80 characters")
	goesOn := s.Type == Task || s.Type == Wait
	p.refuse(goesOn && s.End == (s.Next != ""), "exactly one of Next and End is required")
	p.refuse(!goesOn && (s.End || s.Next != ""), "a %s has neither Next nor End", s.Type)
	details := map[Type]any{Task: s.TaskDetail, Choice: s.ChoiceDetail, Wait: s.WaitDetail, Fail: s.FailDetail, Succeed: struct{}{}}
	p.refuse(details[s.Type] == nil, "the type %q is not supported; supported are Choice, Fail, Succeed, Task, Wait", s.Type)
	for other, detail := range details {
		p.refuse(other != s.Type && !reflect.ValueOf(detail).IsZero(), "a %s has no fields of a %s", s.Type, other)
	}
	switch s.Type {
	case Task:
		s.checkTask(&p, links)
	case Choice:
		p.refuse(len(s.Choices) == 0, "Choices must not be empty")
		for _, c := range s.Choices {
			p.refuse(c.Variable == nil || c.StringEquals == "", "each of Choices needs Variable and StringEquals")
		}
	case Wait:
		s.checkWait(&p)
	}
	return s, p
}

func (w *WaitDetail) checkWait(p *problems) {
	p.refuse((w.Seconds == nil) == (w.TimestampPath == nil), "exactly one of Seconds and TimestampPath is required")
	p.refuse(w.Seconds != nil && (*w.Seconds < 0 || *w.Seconds > maxSeconds), "Seconds must be from 0 to %d", maxSeconds)
}

// targets are the names of the states that the state may lead to.
func (s *State) targets() []string {
	var names []string
	for _, optional := range []string{s.Next, s.Default} {
		if optional != "" {
			names = append(names, optional)
		}
	}
	for _, c := range s.Choices {
		names = append(names, c.Next)
	}
	for _, c := range s.Catchers {
		names = append(names, c.Next)
	}
	return names
}

// Choose returns the state of the first rule that holds, or the default.
func (s *State) Choose(data any) (string, error) {
	for _, c := range s.Choices {
		value, err := c.Variable.get(data)
		if err != nil {
			return "", err
		}
		if value == c.StringEquals {
			return c.Next, nil
		}
	}
	if s.Default == "" {
		// The language calls this error States.NoChoiceMatched. The service reports it with
		// this text.
		return "", runtimeError("Failed to transition out of the state. The state does not point to a next state.")
	}
	return s.Default, nil
}

// Deadline computes when a Wait that was entered at a time is over.
func (s *State) Deadline(entered time.Time, data any) (time.Time, error) {
	if s.Seconds != nil {
		return entered.Add(time.Duration(*s.Seconds) * time.Second), nil
	}
	value, err := s.TimestampPath.get(data)
	if err != nil {
		return time.Time{}, err
	}
	text, _ := value.(string)
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, runtimeError("The path '%s' of TimestampPath must select a timestamp.", s.TimestampPath)
	}
	return until, nil
}
