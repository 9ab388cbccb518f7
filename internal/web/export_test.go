package web

// SetMost sets how many buckets are kept.
func (l *Limiter) SetMost(most int) { l.most = most }

// Len is how many buckets there are.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}
