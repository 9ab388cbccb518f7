package authservice

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TokenStatus says how a token can be used.
type TokenStatus string

const (
	// Valid: it can be used, or refreshed by a caller that needs it.
	Valid TokenStatus = "valid"
	// Refreshing: a caller holds its lease and asks the provider for another token. All other
	// callers wait.
	Refreshing TokenStatus = "refreshing"
	// Expired: neither the token nor its refresh token can be used any more. The user must
	// connect again.
	Expired TokenStatus = "expired"
)

// tokenTransitions lists the statuses that may follow each status. Refreshing may follow
// itself: a new holder takes a lease that is over. Every status may become valid: the user has
// connected again, or a late answer of the provider has come, which is better than no answer.
var tokenTransitions = map[TokenStatus][]TokenStatus{
	Valid:      {Valid, Refreshing, Expired},
	Refreshing: {Refreshing, Valid, Expired},
	Expired:    {Valid},
}

// tokenBefore is the condition that a token may get the status next.
func tokenBefore(next TokenStatus) table.Cond {
	var from []any
	for status, following := range tokenTransitions {
		if slices.Contains(following, next) {
			from = append(from, string(status))
		}
	}
	return table.In(attrStatus, from...)
}

// Owner is the user who owns a token, in a workspace.
type Owner struct{ Workspace, User string }

// Token names one of the owner's tokens.
func (o Owner) Token(id string) TokenRef { return TokenRef{Owner: o, Token: id} }

// TokenRef names a token. Only the owner of a token can name it.
type TokenRef struct {
	Owner
	Token string
}

// Key is the token's storage key.
func (r TokenRef) Key() table.Key { return keys.AuthToken(r.Workspace, r.User, r.Token) }

func (r TokenRef) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: r.Token}
}

// Token is a token without its value, as it may be shown.
type Token struct {
	TokenRef
	// ProviderID is the name of the provider, Agent the agent that the token was made for, ""
	// if it is for the user's own use.
	ProviderID, Agent string
	// Label says which account at the provider it is, for a person.
	Label  string
	Scopes []string
	Status TokenStatus
	// Expires is zero if the provider did not name the expiry time.
	Expires   time.Time
	IsDefault bool
	// Metadata is a JSON object from the owner, or nil if there is no object.
	Metadata         json.RawMessage
	Created, Updated time.Time

	// provider is the resource id: a provider that is created again under the same name is
	// another provider.
	provider string
	// endpoints is the value of Provider.endpoints when the token was made.
	endpoints int64
	sealed    []byte
	// generation counts the grants that the token has held. It is the fence of refreshes: an answer
	// is stored only in place of the grant that it follows.
	generation int64
	// counted says that the quota of the workspace counts the token.
	counted bool
	// lease names the caller that refreshes, leaseUntil is when other callers may try instead,
	// and retryAt is when a provider that failed may be asked again.
	lease               string
	leaseUntil, retryAt time.Time
	refreshable         bool
	refreshAt           time.Time
	version             int64
}

// tokenBody is the part of a token that each grant replaces as a whole.
type tokenBody struct {
	Scopes []string `json:"scopes"`
	Sealed []byte   `json:"sealed"`
}

// credentials are the sealed part of a token.
type credentials struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
}

const kindToken = "auth_token"

const (
	attrStatus      = "status"
	attrProvider    = "provider"
	attrProviderID  = "provider_id"
	attrUser        = "user"
	attrAgent       = "agent"
	attrLabel       = "label"
	attrMetadata    = "metadata"
	attrExpires     = "expires_at"
	attrRefreshAt   = "refresh_at"
	attrRefreshable = "refreshable"
	attrGeneration  = "generation"
	attrLease       = "lease"
	attrLeaseUntil  = "lease_until"
	attrRetryAt     = "retry_at"
	attrGrantedBy   = "granted_by"
	// attrCounted says that the quota counts the token.
	attrCounted = "counted"
)

// decodeToken reads a token, but not whether it is the default.
func decodeToken(workspace string, item *table.Item) (Token, error) {
	r := record.Read(item, kindToken)
	t := Token{
		TokenRef:   Owner{workspace, item.Text(attrUser)}.Token(keys.AuthTokenID(item.Key)),
		ProviderID: item.Text(attrProviderID), Agent: item.Text(attrAgent), Label: item.Text(attrLabel), Status: TokenStatus(item.Text(attrStatus)),
		provider: item.Text(attrProvider), endpoints: item.Int(attrEndpoints), generation: item.Int(attrGeneration), lease: item.Text(attrLease),
		refreshable: item.Bool(attrRefreshable), counted: item.Bool(attrCounted), version: item.Int(record.Version),
		Created: r.Created(), Updated: r.Updated(), Expires: r.Time(attrExpires),
		refreshAt: r.Time(attrRefreshAt), leaseUntil: r.Time(attrLeaseUntil), retryAt: r.Time(attrRetryAt),
	}
	if metadata := item.Text(attrMetadata); metadata != "" {
		t.Metadata = json.RawMessage(metadata)
	}
	var body tokenBody
	r.Decode(&body)
	t.Scopes, t.sealed = append([]string{}, body.Scopes...), body.Sealed
	return t, r.Err()
}

// covers reports whether the token has all the requested scopes.
func (t Token) covers(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(t.Scopes, scope) })
}

// refreshMargin is how long before its end a token is refreshed, so that the caller that gets
// it can use it for a while.
const refreshMargin = 5 * time.Minute

// fresh reports whether the token can be handed out because its end is not near.
func (t Token) fresh(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.refreshAt) }

// alive reports whether the token is still valid now.
func (t Token) alive(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// attrs are the attributes that a grant sets. It is refreshed some minutes before its end, or, if
// its lifetime is short, in the second half of its lifetime.
func (g grant) attrs(now time.Time) table.Attrs {
	attrs := table.Attrs{
		attrStatus: string(Valid), attrExpires: "", attrRefreshAt: "", attrRefreshable: g.Refresh != "", attrLease: "", attrLeaseUntil: "", attrRetryAt: "",
	}
	if g.lifetime > 0 {
		attrs[attrExpires] = clock.Format(now.Add(g.lifetime))
		attrs[attrRefreshAt] = clock.Format(now.Add(max(g.lifetime-refreshMargin, g.lifetime/2)))
	}
	return attrs
}

func tokenNotFound(id string) error {
	return fault.New(fault.NotFound, "Token ID %s not found.", plain(id, nil))
}
