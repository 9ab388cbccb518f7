package asl

import "time"

func (s *State) parseWait(f *fields) {
	_, fixed := f.values["Seconds"]
	_, selected := f.values["TimestampPath"]
	if fixed == selected {
		f.scope.refuse("exactly one of Seconds and TimestampPath is required")
	}
	s.wait = time.Duration(f.integer("Seconds", 0, maxSeconds, 0)) * time.Second
	s.until = f.path("TimestampPath")
}

// Deadline computes when a Wait that was entered at a time is over.
func (s *State) Deadline(entered time.Time, data any) (time.Time, error) {
	if s.until == nil {
		return entered.Add(s.wait), nil
	}
	value, err := s.until.get(data)
	if err != nil {
		return time.Time{}, err
	}
	text, _ := value.(string)
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, runtimeError("The path '%s' of TimestampPath must select a timestamp.", s.until)
	}
	return until, nil
}
