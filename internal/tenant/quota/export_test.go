package quota

import (
	"context"
	"time"
)

// SetTerm sets how long a term of streams is, before any stream is counted.
func (s *Shared) SetTerm(term time.Duration) { s.term = term }

// StreamPlace is the place of a stream that is not renewed by itself.
type StreamPlace struct{ *streamPlace }

// NewStreamPlace takes a place.
func (s *Shared) NewStreamPlace(ctx context.Context, workspace, deployment, thread string) (StreamPlace, error) {
	p := s.streamPlace(workspace, deployment, thread)
	return StreamPlace{p}, p.take(ctx)
}

// Renew renews the place.
func (s StreamPlace) Renew(ctx context.Context) error { return s.renew(ctx) }

// Leave gives the place back.
func (s StreamPlace) Leave(ctx context.Context) { s.release(ctx) }
