package asl

// rule leads to a state if the value that a path selects is a text.
type rule struct {
	variable path
	equals   string
	next     string
}

func (s *State) parseChoice(f *fields) {
	f.require("Choices")
	for _, r := range f.objects("Choices") {
		r.require("Variable", "StringEquals", "Next")
		r.text("Comment")
		s.rules = append(s.rules, rule{r.path("Variable"), r.text("StringEquals"), s.leadTo(r, "Next")})
		r.done()
	}
	s.defaultNext = s.leadTo(f, "Default")
}

// Choose returns the state of the first rule that holds, or the default.
func (s *State) Choose(data any) (string, error) {
	for _, r := range s.rules {
		value, err := r.variable.get(data)
		if err != nil {
			return "", err
		}
		if value == r.equals {
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
