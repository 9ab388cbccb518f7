package authservice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// retryTime is how long a provider that could not refresh a token is not asked again.
// Meanwhile the token is used until it expires.
const retryTime = 15 * time.Second

// errExpired says that a token can no longer be used, and cannot be refreshed.
var errExpired = errors.New("the token has expired")

// leaseTime is longer than a refresh can take, because each refresh is bounded. The lease
// decides when another process tries. The generation decides which process may write, so
// clocks that differ can cost a request but never a token.
func (s *Service) leaseTime() time.Duration { return s.Timeout + 2*storeTime }

// patience is how long a caller waits for another caller's refresh while the token is still valid.
// Some providers void the old token with a refresh, so the caller does wait.
func (s *Service) patience() time.Duration { return s.Timeout / 4 }

// use returns a token with its value, refreshed if it is near its end. If several callers need the
// refresh at a time, in any process, one caller asks the provider, and the others wait for the
// result in the table. If the token can no longer be used, the error is errExpired.
func (s *Service) use(ctx context.Context, ref TokenRef) (Token, credentials, error) {
	var watcher table.Watcher
	var due <-chan time.Time
	refreshed, waited := false, false
	for {
		t, err := s.token(ctx, ref)
		if err != nil {
			return Token{}, credentials{}, err
		}
		now := s.Now()
		switch t.next(now, refreshed, waited) {
		case isOver:
			return Token{}, credentials{}, errExpired
		case handOut:
			held, err := s.open(ctx, t)
			return t, held, err
		case refuse:
			return Token{}, credentials{}, fault.New(fault.Unavailable, "Auth provider ID %s does not refresh the token at present. Try again later.", t.ProviderID)
		case await:
			if watcher == nil {
				watcher = s.Table.Watch(ref.Key())
				defer watcher.Stop()
				continue // read again, so that no change is missed
			}
			if due == nil {
				due = s.dueFor(t, now)
			}
			select {
			case <-watcher.C(): // the write of the lease wakes, too
			case <-due:
				waited, due = true, nil
			case <-ctx.Done():
				err = ctx.Err()
			}
		case giveUp:
			err = s.expire(ctx, t, "no_refresh_token")
		case lead:
			refreshed, err = s.lead(ctx, t)
		}
		if err != nil {
			return Token{}, credentials{}, err
		}
	}
}

// dueFor fires when a caller has waited long enough for another caller's refresh.
func (s *Service) dueFor(t Token, now time.Time) <-chan time.Time {
	most := t.leaseUntil.Sub(now)
	if t.alive(now) {
		most = min(most, s.patience())
	}
	return time.After(most)
}

// move is the next action for a token that a caller needs.
type move int

const (
	isOver  move = iota // it is known to be unusable
	handOut             // it is valid
	refuse              // it is not valid, and the provider is not asked for now
	await               // another caller refreshes it
	giveUp              // it has expired, and there is no refresh token
	lead                // it must be refreshed
)

// next decides the next action. justRefreshed says that this caller has just refreshed the
// token, so another refresh would not help; waited says that this caller has waited long
// enough for another caller's refresh.
func (t Token) next(now time.Time, justRefreshed, waited bool) move {
	resting, refreshing := now.Before(t.retryAt), t.Status == Refreshing && now.Before(t.leaseUntil)
	switch {
	case t.Status == Expired:
		return isOver
	case refreshing && (!waited || !t.alive(now)):
		return await
	case refreshing || t.fresh(now) || justRefreshed:
		return handOut
	case t.alive(now) && (resting || !t.refreshable):
		return handOut
	case !t.refreshable:
		return giveUp
	case resting:
		return refuse
	default:
		return lead
	}
}

// lead takes the token's lease and refreshes it. It reports whether it got a new grant; if
// not, the stored token decides what to do next.
func (s *Service) lead(ctx context.Context, t Token) (bool, error) {
	now := s.Now()
	t.lease = id.New(now)
	leased, err := record.Try(ctx, s.Table, record.Change(t.Key(), now, table.Attrs{
		attrStatus: string(Refreshing), attrLease: t.lease, attrLeaseUntil: clock.FormatOptional(now.Add(s.leaseTime())),
	}, table.All(table.Equals(record.Version, t.version), tokenBefore(Refreshing))))
	if err != nil || !leased {
		return false, err
	}
	// From here on the old refresh token may be used up with the first byte that is sent: the
	// answer must be stored whether or not a caller still waits for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout+storeTime)
	defer cancel()
	return s.refresh(ctx, t)
}

// refusals are the codes of refreshes after which only the user can help, by a new consent: the
// code of RFC 6749, section 5.2, and those of GitHub, Slack and Microsoft.
var refusals = []string{
	"invalid_grant", "bad_refresh_token", "invalid_refresh_token", "interaction_required", "consent_required", "login_required",
}

func (s *Service) refresh(ctx context.Context, t Token) (bool, error) {
	p, held, c, err := s.prepare(ctx, t)
	if err != nil {
		return false, errors.Join(err, s.end(ctx, t, Valid, time.Time{}))
	}
	g, f := s.renew(ctx, c, held.Refresh)
	if f != nil {
		s.Log.WarnContext(ctx, "token was not refreshed", "token_id", t.Token, "provider_id", t.ProviderID, "code", f.code)
		if slices.Contains(refusals, f.code) {
			return false, s.expire(ctx, t, f.code)
		}
		return false, s.end(ctx, t, Valid, s.Now().Add(retryTime))
	}
	stored := false
	err = s.insist(ctx, func() (err error) {
		stored, err = s.advance(ctx, t, g)
		return err
	})
	if errors.Is(err, errAnswered) {
		// The token was deleted meanwhile: the new grant is revoked if possible.
		if f := s.revoke(ctx, p, g.credentials); f != nil {
			s.Log.WarnContext(ctx, "token of a deleted connection was not revoked", "token_id", t.Token, "error", f)
		}
		return false, nil
	}
	if err != nil {
		s.Log.ErrorContext(ctx, "refreshed token was not stored", "token_id", t.Token, "error", err)
	}
	return stored, err
}

// prepare reads the data for a refresh.
func (s *Service) prepare(ctx context.Context, t Token) (p Provider, held credentials, c conversation, err error) {
	if p, err = s.Provider(ctx, t.Workspace, t.ProviderID); err == nil && !p.holds(t) {
		err = providerNotFound(t.ProviderID)
	}
	if err == nil {
		held, err = s.open(ctx, t)
	}
	if err == nil {
		c, err = s.converse(ctx, p, "", t.Scopes)
	}
	return p, held, c, err
}

// advance stores a new grant in place of the grant that it follows. It does not matter whether
// the lease still holds: while the generation is the same, there is no newer grant. The error
// is errAnswered if the token is gone.
func (s *Service) advance(ctx context.Context, t Token, g grant) (bool, error) {
	sealed, err := s.seal(ctx, t.TokenRef, g.credentials)
	if err != nil {
		return false, err
	}
	now := s.Now()
	attrs := g.attrs(now)
	attrs[attrGeneration], attrs[attrGrantedBy] = t.generation+1, t.lease
	change := record.Change(t.Key(), now, attrs, table.All(table.Equals(attrGeneration, t.generation), tokenBefore(Valid)))
	change.Body = record.Encode(tokenBody{g.granted(t.Scopes), sealed})
	stored := false
	var o record.Outbox
	o.AddOr(change, func(token *table.Item) error {
		if token == nil {
			return errAnswered
		}
		// If the answer to an earlier try was lost, that try may have stored the grant.
		stored = token.Text(attrGrantedBy) == t.lease
		return nil
	})
	o.AddOr(t.event(TokenRefreshed, t.Agent, "", now), record.Always(errors.New("store refreshed token: its event has an id that exists")))
	if err := record.Commit(ctx, s.Table, o); errors.Is(err, record.ErrLost) {
		return stored, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// expire notes that the token can no longer be used.
func (s *Service) expire(ctx context.Context, t Token, detail string) error {
	return s.end(ctx, t, Expired, time.Time{}, t.event(TokenRefused, t.Agent, detail, s.Now()))
}

// end gives the lease back, with the status of the token from now on. The provider is not asked
// again before retryAt. If this caller no longer holds the lease, or the token has got a new grant
// meanwhile, the stored token decides what to do next.
func (s *Service) end(ctx context.Context, t Token, next TokenStatus, retryAt time.Time, and ...table.Write) error {
	change := record.Change(t.Key(), s.Now(), table.Attrs{
		attrStatus: string(next), attrLease: "", attrLeaseUntil: "", attrRetryAt: clock.FormatOptional(retryAt),
	}, table.All(table.Equals(attrLease, t.lease), table.Equals(attrGeneration, t.generation), tokenBefore(next)))
	_, err := record.Try(ctx, s.Table, append([]table.Write{change}, and...)...)
	return err
}
