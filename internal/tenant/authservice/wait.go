package authservice

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// codeExpired is the error of a request whose time is over.
const codeExpired = "authorization_expired"

// Wait returns the result of a request for consent. It waits for the result up to the timeout;
// without a timeout it looks once. It has an answer for every id.
func (s *Service) Wait(ctx context.Context, workspace, authID string, timeout time.Duration) (Answer, error) {
	var watcher table.Watcher
	timedOut := time.After(timeout)
	for {
		r, err := s.request(ctx, workspace, authID)
		if err != nil || r.status == requestCompleted || r.over(s.Now()) {
			return s.outcome(ctx, r, err)
		}
		if timeout <= 0 {
			return Answer{Status: Pending, AuthID: r.ID, User: r.User}, nil
		}
		if watcher == nil {
			watcher = s.Table.Watch(r.key())
			defer watcher.Stop()
			continue // read again, so that no change is missed
		}
		select {
		case <-watcher.C():
		case <-time.After(r.expires.Sub(s.Now())):
		case <-timedOut:
			return Answer{Status: Timeout, AuthID: r.ID, User: r.User}, nil
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
}

// outcome is the answer to a request that has ended.
func (s *Service) outcome(ctx context.Context, r request, err error) (Answer, error) {
	switch {
	case errors.Is(err, table.ErrNotFound):
		return Answer{Status: NotFound}, nil
	case err != nil:
		return Answer{}, err
	case r.status == requestFailed:
		return Answer{Status: NotFound, User: r.User, Error: r.code, ErrorDescription: r.words}, nil
	case r.status != requestCompleted:
		return Answer{Status: NotFound, User: r.User, Error: codeExpired, ErrorDescription: "The user did not consent in time."}, nil
	}
	t, plain, err := s.use(ctx, r.Token(r.token))
	if errors.Is(err, errExpired) || fault.Is(err, fault.NotFound) {
		return Answer{Status: NotFound, User: r.User}, nil // deleted or revoked since
	}
	if err != nil {
		return Answer{}, err
	}
	return completed(t, plain), nil
}
