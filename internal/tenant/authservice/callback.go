package authservice

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/oauthstate"
)

// Callback holds the data that a provider sends back through the user's browser.
type Callback struct {
	ProviderID  string
	State, Code string
	// Error and ErrorDescription are sent in place of a code. Issuer is the iss parameter of RFC
	// 9207.
	Error, ErrorDescription, Issuer string
	// Caller is the sender if it is known, as with a POST of a client; nil for a browser's
	// redirect, which is verified only by the state.
	Caller *Owner
}

// Outcome is the result of a callback, for the page that the user sees. Error is "" if there
// is a token.
type Outcome struct {
	AuthID, ProviderID      string
	Error, ErrorDescription string
}

// Complete takes a callback: it claims the request that the state names, once, exchanges the
// code, stores the token and wakes the waiting callers. A state that is not valid is a
// fault.Invalid; a refusal by the user or the provider is an Outcome.
func (s *Service) Complete(ctx context.Context, back Callback) (Outcome, error) {
	r, p, err := s.answers(ctx, back)
	if err != nil {
		return Outcome{}, err
	}
	if f := back.refusal(p); f != nil {
		if err := s.fail(ctx, r, f, requestPending); err != nil {
			return Outcome{}, err
		}
		return r.outcome(f), nil
	}
	// Only one of several concurrent callbacks gets the request.
	if err := s.step(ctx, r, requestPending, requestExchanging, table.Attrs{}); err != nil {
		return Outcome{}, err
	}
	// From here on, the code is used up, whether or not the browser still waits.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout+storeTime)
	defer cancel()
	f, err := s.exchange(ctx, p, r, back.Code)
	if err != nil {
		s.Log.ErrorContext(ctx, "authorization was not completed", "auth_id", r.ID, "error", err)
		f = &failure{code: "server_error", words: "The token could not be stored."}
	}
	if f != nil {
		return r.outcome(f), errors.Join(err, s.fail(ctx, r, f, requestExchanging))
	}
	return r.outcome(nil), nil
}

// Asked returns the owner and the provider of the token that a callback leads to. The callback
// stays valid.
func (s *Service) Asked(ctx context.Context, back Callback) (Owner, Provider, error) {
	r, p, err := s.answers(ctx, back)
	return r.Owner, p, err
}

// Connects reports whether an earlier callback with the same state has led to a token, or exchanges
// its code at this moment. A browser repeats a callback when a person reloads the page, goes back
// or presses the button twice.
func (s *Service) Connects(ctx context.Context, back Callback) (done, underWay bool) {
	r, err := s.named(ctx, back)
	return err == nil && r.status == requestCompleted, err == nil && r.status == requestExchanging && !r.over(s.Now())
}

// named returns the request whose state a callback has, whatever its status.
func (s *Service) named(ctx context.Context, back Callback) (request, error) {
	named, ok := oauthstate.Parse(back.State)
	if !ok {
		return request{}, badState()
	}
	r, err := s.request(ctx, named.Workspace, named.Request)
	if errors.Is(err, table.ErrNotFound) {
		return request{}, badState()
	}
	if err == nil && (!named.Opens(r.state) || r.ProviderID != back.ProviderID || !r.isOf(back.Caller)) {
		err = badState()
	}
	return r, err
}

// answers returns the request that a callback answers, and the provider.
func (s *Service) answers(ctx context.Context, back Callback) (request, Provider, error) {
	r, err := s.named(ctx, back)
	if err != nil {
		return request{}, Provider{}, err
	}
	if r.status != requestPending || r.over(s.Now()) {
		return request{}, Provider{}, badState()
	}
	p, err := s.Provider(ctx, r.Workspace, r.ProviderID)
	if err == nil && (p.ID != r.Provider || p.endpoints != r.Endpoints) {
		err = providerNotFound(r.ProviderID)
	}
	return r, p, err
}

// isOf reports whether a caller may complete the request; nil is a browser.
func (r request) isOf(caller *Owner) bool {
	if caller == nil {
		return true
	}
	sameUser := caller.User == "" || subtle.ConstantTimeCompare([]byte(caller.User), []byte(r.User)) == 1
	return caller.Workspace == r.Workspace && sameUser
}

func (r request) outcome(f *failure) Outcome {
	o := Outcome{AuthID: r.ID, ProviderID: r.ProviderID}
	if f != nil {
		o.Error, o.ErrorDescription = f.code, f.words
	}
	return o
}

// refusal returns the reason why a callback contains no code, or nil if it contains a code. An
// issuer that is not the provider's issuer shows that the answer comes from another server
// (RFC 9207, section 2.4).
func (back Callback) refusal(p Provider) *failure {
	secrets := []string{back.Code, back.State}
	switch {
	case p.Issuer != "" && back.Issuer != p.Issuer && (back.Issuer != "" || p.NamesIssuer):
		return &failure{code: "invalid_issuer", words: "The answer is not from the provider's issuer."}
	case back.Error != "":
		return &failure{code: plain(back.Error, secrets), words: plain(back.ErrorDescription, secrets)}
	case back.Code == "" || len(back.Code) > maxCredentials:
		return &failure{code: "invalid_request", words: "The provider sent no code that can be used."}
	}
	return nil
}

// fail ends the request with an explanation for the waiting callers.
func (s *Service) fail(ctx context.Context, r request, f *failure, from requestStatus) error {
	return s.step(ctx, r, from, requestFailed, table.Attrs{attrCode: f.code, attrWords: f.words})
}

func (s *Service) step(ctx context.Context, r request, from, next requestStatus, set table.Attrs) error {
	set[attrStatus] = string(next)
	var o record.Outbox
	o.AddOr(record.Change(r.key(), s.Now(), set, table.Equals(attrStatus, string(from))), record.Always(badState()))
	return record.Commit(ctx, s.Table, o)
}

// exchange exchanges the code and stores the token together with the end of the request. A
// refusal by the provider is a failure.
func (s *Service) exchange(ctx context.Context, p Provider, r request, code string) (*failure, error) {
	verifier, err := s.Sealer.Open(ctx, r.bound(), r.Verifier)
	if err != nil {
		return nil, fmt.Errorf("open verifier: %w", err)
	}
	c, err := s.converse(ctx, p, r.Redirect, r.Scopes)
	if err != nil {
		return nil, err
	}
	g, f := s.redeem(ctx, c, code, string(verifier))
	if f != nil {
		s.Log.WarnContext(ctx, "code was not exchanged", "auth_id", r.ID, "provider_id", p.ProviderID, "code", f.code)
		return f, nil
	}
	k := grantToStore{
		TokenRef: r.Token(r.Replaces), replaces: r.Replaces != "", agent: r.Agent,
		grant: g, scopes: g.granted(r.Scopes), isDefault: r.Default, event: TokenCreated,
		done: func(token string) table.Write {
			return record.Change(r.key(), s.Now(), table.Attrs{attrStatus: string(requestCompleted), attrToken: token}, table.Equals(attrStatus, string(requestExchanging)))
		},
	}
	if !k.replaces {
		k.TokenRef = r.Token(id.New(s.Now()))
	}
	return nil, s.insist(ctx, func() error {
		_, err := s.storeGrant(ctx, p, k)
		if !errors.Is(err, errAnswered) {
			return err
		}
		// The answer to the previous write may have been lost although the write succeeded.
		if now, readErr := s.request(ctx, r.Workspace, r.ID); readErr == nil && now.status == requestCompleted {
			return nil
		}
		return err
	})
}

// insist repeats a write until it is decided, or the context ends: the provider's grant is
// lost if it is not stored.
func (s *Service) insist(ctx context.Context, write func() error) error {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		err := write()
		_, isFault := errors.AsType[*fault.Error](err)
		if err == nil || isFault || errors.Is(err, errAnswered) {
			return err
		}
		if !clock.Sleep(ctx, pause) {
			return err
		}
	}
}
