package quota

import (
	"context"
	"time"
)

// SetTerm sets how long a term of streams is, before any stream is counted.
func (s *Shared) SetTerm(term time.Duration) { s.term = term }

// Seat is the place of a stream that is not renewed by itself.
type Seat struct{ *seat }

// Sit takes a place.
func (s *Shared) Sit(ctx context.Context, workspace, deployment, thread string) (Seat, error) {
	h, err := s.sit(ctx, workspace, deployment, thread)
	return Seat{h}, err
}

// Renew renews the place.
func (s Seat) Renew(ctx context.Context) error { return s.renew(ctx) }

// Leave gives the place back.
func (s Seat) Leave(ctx context.Context) { s.leave(ctx) }
