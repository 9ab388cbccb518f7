package thread

// SetMost sets how many threads a search looks at.
func (s *Store) SetMost(most int) { s.most = most }

// SweepLimit is how many threads of a shard a pass checks.
const SweepLimit = sweepLimit
