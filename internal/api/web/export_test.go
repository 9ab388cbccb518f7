package web

import "time"

// SetArrival sets how long a body may take to arrive, before any request is checked.
func (c *Contract) SetArrival(arrival time.Duration) error {
	l, err := c.loader()
	if err != nil {
		return err
	}
	l.arrival = arrival
	return nil
}

// SetPatience sets how long bodies may take to arrive, before and after their requests are
// answered.
func (m *Mux) SetPatience(arrival, refused time.Duration) { m.arrival, m.refused = arrival, refused }

// SetTaking sets how long clients may take to accept what is written.
func (m *Mux) SetTaking(taking time.Duration) { m.taking = taking }

// SetMost sets how many buckets are kept.
func (l *Limiter) SetMost(most int) { l.most = most }

// Len is how many buckets there are.
func (l *Limiter) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}
