package asl

import (
	"encoding/json"
	"time"
)

// deadline computes when a Wait is over.
type deadline func(entered time.Time, input any, c *Context) (time.Time, error)

// waitFields are the ways to say how long a Wait takes. A state has exactly one of them.
var waitFields = []struct {
	name    string
	compile func(scope, json.RawMessage) deadline
}{
	{"Seconds", secondsAt},
	{"SecondsPath", secondsPathAt},
	{"Timestamp", timestampAt},
	{"TimestampPath", timestampPathAt},
}

func (s *State) parseWait(f *fields) {
	found := 0
	for _, field := range waitFields {
		if text, ok := f.take(field.name); ok {
			found++
			s.deadline = field.compile(f.scope.in(field.name), text)
		}
	}
	if found != 1 {
		f.scope.refuse("exactly one of Seconds, SecondsPath, Timestamp and TimestampPath is required")
	}
}

// Deadline computes when a Wait that was entered at a time is over.
func (s *State) Deadline(entered time.Time, data any, c *Context) (time.Time, error) {
	input, err := s.Input(data, c)
	if err != nil {
		return time.Time{}, err
	}
	return s.deadline(entered, input, c)
}

func secondsAt(s scope, text json.RawMessage) deadline {
	value, err := Decode(text)
	seconds, ok := wholeSeconds(value)
	if err != nil || !ok {
		s.refuse("an integer from 0 to %d is required", maxSeconds)
	}
	return func(entered time.Time, _ any, _ *Context) (time.Time, error) { return entered.Add(seconds), nil }
}

func secondsPathAt(s scope, text json.RawMessage) deadline {
	p := waitPathAt(s, text)
	return func(entered time.Time, input any, c *Context) (time.Time, error) {
		value, err := p.get(input, c)
		if err != nil {
			return time.Time{}, err
		}
		seconds, ok := wholeSeconds(value)
		if !ok {
			return time.Time{}, runtimeError("The path '%s' of SecondsPath must select an integer from 0 to %d.", p.text, maxSeconds)
		}
		return entered.Add(seconds), nil
	}
}

func timestampAt(s scope, text json.RawMessage) deadline {
	value, err := Decode(text)
	until, ok := asTimestamp(value)
	if err != nil || !ok {
		s.refuse("a timestamp as 2006-01-02T15:04:05Z is required")
	}
	return func(time.Time, any, *Context) (time.Time, error) { return until, nil }
}

func timestampPathAt(s scope, text json.RawMessage) deadline {
	p := waitPathAt(s, text)
	return func(_ time.Time, input any, c *Context) (time.Time, error) {
		value, err := p.get(input, c)
		if err != nil {
			return time.Time{}, err
		}
		until, ok := asTimestamp(value)
		if !ok {
			return time.Time{}, runtimeError("The path '%s' of TimestampPath must select a timestamp.", p.text)
		}
		return until, nil
	}
}

func waitPathAt(s scope, text json.RawMessage) *path {
	p, err := pathOf(text)
	if err != nil {
		s.refuse("%v", err)
		return &path{}
	}
	return p
}

func wholeSeconds(value any) (time.Duration, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	seconds, err := number.Int64()
	if err != nil || seconds < 0 || seconds > maxSeconds {
		return 0, false
	}
	return time.Duration(seconds) * time.Second, true
}
