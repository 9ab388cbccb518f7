package thread

// SetMost sets how many threads a search looks at.
func (s *Store) SetMost(most int) { s.most = most }
