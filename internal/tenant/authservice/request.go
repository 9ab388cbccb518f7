package authservice

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/oauthstate"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// requestStatus is the state of a request for a user's consent. No step leads back to pending, so
// a state can be used only once.
type requestStatus string

const (
	// requestPending: the user has been sent to the provider. Then: exchanging or failed.
	requestPending requestStatus = "pending"
	// requestExchanging: a callback has claimed the request, and exchanges its code. If the
	// callback does not finish, the request ends when its time is over. Then: completed or failed.
	requestExchanging requestStatus = "exchanging"
	// requestCompleted: there is a token.
	requestCompleted requestStatus = "completed"
	// requestFailed: the user or the provider refused, or the exchange failed. A code can be
	// used once, so the request cannot become pending again.
	requestFailed requestStatus = "failed"
)

const (
	// consentTime is how long a user may take to consent.
	consentTime = 10 * time.Minute
	// resultTime is how long the outcome can be read afterwards.
	resultTime = 24 * time.Hour
)

// request is a request for a user's consent.
type request struct {
	Owner
	ID      string
	expires time.Time
	status  requestStatus
	// state is the hash of the oauthstate.State, token is the resulting token's id, and code
	// and words say why there is no token.
	state, token, code, words string
	requestBody
}

// requestBody is the part of a request that never changes.
type requestBody struct {
	ProviderID string   `json:"provider_id"`
	Provider   string   `json:"provider"`
	Endpoints  int64    `json:"endpoints,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	Scopes     []string `json:"scopes"`
	Redirect   string   `json:"redirect_uri"`
	// Replaces is the token whose grant is replaced by the new grant, "" for a new token.
	Replaces string `json:"replaces,omitempty"`
	Default  bool   `json:"default"`
	Verifier []byte `json:"verifier"` // sealed
}

const (
	kindRequest = "auth_request"
	attrState   = "state"
	attrToken   = "token"
	attrCode    = "error"
	attrWords   = "error_description"
)

func (r request) key() table.Key { return keys.AuthRequest(r.Workspace, r.ID) }

func (r request) bound() secret.Bound { return secret.Bound{Workspace: r.Workspace, Resource: r.ID} }

// over reports whether the request can no longer lead to a token.
func (r request) over(now time.Time) bool {
	return r.status == requestFailed || r.status != requestCompleted && !now.Before(r.expires)
}

// storeRequest stores a request and returns it with its state and the verifier of its code
// challenge.
func (s *Service) storeRequest(ctx context.Context, p Provider, owner Owner, body requestBody, verifier string) (request, string, error) {
	now := s.Now()
	if body.Replaces == "" { // a user should not consent to a token for which there is no room
		if _, err := s.Quotas.Take(ctx, s.Table, now, quota.AuthTokens, owner.Workspace, 1); err != nil {
			return request{}, "", err
		}
	}
	r := request{Owner: owner, ID: id.New(now), expires: now.Add(consentTime), status: requestPending, requestBody: body}
	state := oauthstate.New(owner.Workspace, r.ID)
	r.ProviderID, r.Provider, r.Endpoints, r.state = p.ProviderID, p.ID, p.endpoints, state.Hash()
	var err error
	if r.Verifier, err = s.Sealer.Seal(ctx, r.bound(), []byte(verifier)); err != nil {
		return request{}, "", fmt.Errorf("seal verifier: %w", err)
	}
	var o record.Outbox
	p.requireProvider(&o)
	put := record.New(r.key(), kindRequest, now, table.Attrs{
		attrStatus: string(r.status), attrUser: owner.User, attrState: r.state, attrExpires: clock.FormatOptional(r.expires),
	}, record.Encode(r.requestBody))
	put.Item.Expires = r.expires.Add(resultTime)
	o.Add(put)
	return r, state.String(), record.Commit(ctx, s.Table, o)
}

// request returns a request; an unknown request is table.ErrNotFound.
func (s *Service) request(ctx context.Context, workspace, requestID string) (request, error) {
	if !id.Valid(requestID) {
		return request{}, table.ErrNotFound
	}
	item, err := s.Table.Get(ctx, keys.AuthRequest(workspace, requestID))
	if err != nil {
		return request{}, fmt.Errorf("get auth request: %w", err)
	}
	read := record.Read(item, kindRequest)
	r := request{
		Owner: Owner{workspace, item.Text(attrUser)}, ID: requestID, status: requestStatus(item.Text(attrStatus)),
		state: item.Text(attrState), token: item.Text(attrToken), code: item.Text(attrCode), words: item.Text(attrWords),
		expires: read.Time(attrExpires),
	}
	read.Decode(&r.requestBody)
	return r, read.Err()
}

// badState is the fault of every state that is not valid, for any reason: a client that
// guesses learns nothing.
func badState() error {
	return fault.New(fault.Invalid, "The state is not valid: it is unknown, was used before, or has expired. Start the authorization again.")
}
