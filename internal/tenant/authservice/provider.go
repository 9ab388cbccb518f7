package authservice

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// ClientAuth is how the service names itself at a provider's token endpoint (RFC 7591, section 2).
type ClientAuth string

const (
	// AuthNone: a public client, which has no secret.
	AuthNone ClientAuth = "none"
	// AuthBasic: the secret in the Authorization header.
	AuthBasic ClientAuth = "client_secret_basic"
	// AuthPost: the secret in the form, the default.
	AuthPost ClientAuth = "client_secret_post"
)

// ProviderType names a provider that deviates from the standard; "" does not deviate.
type ProviderType string

const (
	// Microsoft gives a refresh token only when asked for offline_access.
	Microsoft ProviderType = "microsoft"
	// Salesforce gives a refresh token only when asked for refresh_token, and does not say how long
	// its tokens live.
	Salesforce ProviderType = "salesforce"
	// Slack separates scopes by commas.
	Slack ProviderType = "slack"
)

// S256 is the only code challenge method.
const S256 = "S256"

// ProviderSpec is the description of a provider from its client.
type ProviderSpec struct {
	Name                string       `json:"name"`
	ClientID            string       `json:"client_id"`
	AuthURL             string       `json:"auth_url"`
	TokenURL            string       `json:"token_url"`
	RevocationURL       string       `json:"revocation_url,omitempty"`
	UsesPKCE            bool         `json:"uses_pkce"`
	CodeChallengeMethod string       `json:"code_challenge_method"`
	Type                ProviderType `json:"provider_type,omitempty"`
	ClientAuth          ClientAuth   `json:"token_endpoint_auth_method"`
	// MCPServerURL and Dynamic are set when the provider was found behind an MCP server, and
	// registered itself there.
	MCPServerURL string `json:"mcp_server_url,omitempty"`
	Dynamic      bool   `json:"is_dynamic_client"`
	// Issuer is the issuer that a callback must name if it names an issuer; NamesIssuer says
	// that each callback must name it (RFC 9207). Resource is the resource that tokens are
	// requested for (RFC 8707).
	Issuer      string `json:"issuer,omitempty"`
	NamesIssuer bool   `json:"names_issuer,omitempty"`
	Resource    string `json:"resource,omitempty"`
}

// Provider is an OAuth authorization server and the client that a workspace has there. Its secret
// is never shown.
type Provider struct {
	Workspace string
	// ID is the resource's id, ProviderID the name that it is addressed by, unique in the
	// workspace.
	ID, ProviderID string
	ProviderSpec
	HasSecret        bool
	Created, Updated time.Time

	secret []byte
	// endpoints counts the changes of its URLs. Secrets and tokens that were made at earlier
	// URLs are never sent to the URLs that replaced them.
	endpoints int64
	version   int64
	// leaving says that it is being deleted.
	leaving bool
}

// holds reports whether a token was made at the provider as it is now: not by another provider
// of the same name, and not at URLs that the provider had before.
func (p Provider) holds(t Token) bool { return p.ID == t.provider && p.endpoints == t.endpoints }

// Version counts the changes of a provider.
func (p Provider) Version() int64 { return p.version }

// hasValuesOf reports whether a patch of before that led to p changed nothing. A client secret that
// was sent always counts as a change: it is sealed again, and never compared with the one before.
func (p Provider) hasValuesOf(before Provider) bool {
	return p.ProviderSpec == before.ProviderSpec && bytes.Equal(p.secret, before.secret)
}

// expected refuses a provider that has another version than the change expects.
func (p Provider) expected(versions record.Versions) error {
	return versions.Check(p.version, "Auth provider ID "+p.ProviderID)
}

func (p Provider) bound() secret.Bound { return secret.Bound{Workspace: p.Workspace, Resource: p.ID} }

func (p Provider) key() table.Key { return keys.AuthProvider(p.Workspace, p.ProviderID) }

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindProvider: func(item *table.Item) (secret.Bound, error) { return boundOf(item, item.Text(attrResource)) },
	kindToken:    func(item *table.Item) (secret.Bound, error) { return boundOf(item, keys.AuthTokenID(item.Key)) },
	kindRequest:  func(item *table.Item) (secret.Bound, error) { return boundOf(item, keys.AuthRequestID(item.Key)) },
}

func boundOf(item *table.Item, resource string) (secret.Bound, error) {
	workspace, err := keys.WorkspaceOf(item.Key)
	return secret.Bound{Workspace: workspace, Resource: resource}, err
}

// body is the part of a provider that is not stored in attributes.
type providerBody struct {
	ProviderSpec
	Secret []byte `json:"secret,omitempty"`
}

const (
	kindProvider   = "auth_provider"
	attrResource   = "resource"
	attrIsLeaving  = "leaving"
	attrEndpoints  = "endpoints"
	maxName        = 256
	maxCredentials = 8 << 10
)

func decodeProvider(workspace string, item *table.Item) (Provider, error) {
	r := record.Read(item, kindProvider)
	var body providerBody
	r.Decode(&body)
	return Provider{
		Workspace: workspace, ProviderID: item.Key.SK, ID: item.Text(attrResource), ProviderSpec: body.ProviderSpec, HasSecret: len(body.Secret) > 0,
		Created: r.Created(), Updated: r.Updated(), secret: body.Secret, endpoints: item.Int(attrEndpoints), version: item.Int(record.Version),
		leaving: item.Bool(attrIsLeaving),
	}, r.Err()
}

var providerIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// check returns a fault.Invalid unless a provider obeys the rules. hasSecret reports whether
// it has a client secret.
func (s *Service) check(p ProviderSpec, hasSecret bool) error {
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return fault.New(fault.Invalid, "name must have 1 to %d bytes.", maxName)
	case p.ClientID == "" || len(p.ClientID) > outbound.MaxURL:
		return fault.New(fault.Invalid, "client_id must have 1 to %d bytes.", outbound.MaxURL)
	case p.CodeChallengeMethod != S256:
		return fault.New(fault.Invalid, "code_challenge_method must be %s.", S256)
	case !slices.Contains([]ProviderType{"", Microsoft, Salesforce, Slack}, p.Type):
		return fault.New(fault.Invalid, "provider_type must be %s, %s, %s or null.", Microsoft, Salesforce, Slack)
	}
	if err := p.checkClient(hasSecret); err != nil {
		return err
	}
	err := cmp.Or(s.checkURL("auth_url", p.AuthURL), s.checkURL("token_url", p.TokenURL))
	if err == nil && p.RevocationURL != "" {
		return s.checkURL("revocation_url", p.RevocationURL)
	}
	return err
}

// checkClient checks that the client has the credentials that its authentication method needs.
func (p ProviderSpec) checkClient(hasSecret bool) error {
	switch {
	case p.ClientAuth != AuthNone && p.ClientAuth != AuthBasic && p.ClientAuth != AuthPost:
		return fault.New(fault.Invalid, "token_endpoint_auth_method must be %s, %s or %s.", AuthNone, AuthBasic, AuthPost)
	case p.ClientAuth == AuthNone && hasSecret:
		return fault.New(fault.Invalid, "token_endpoint_auth_method none is for clients without a client_secret.")
	case p.ClientAuth == AuthBasic && !hasSecret:
		return fault.New(fault.Invalid, "token_endpoint_auth_method %s needs a client_secret.", AuthBasic)
	case !hasSecret && !p.UsesPKCE:
		// See RFC 9700, section 2.1.1.
		return fault.New(fault.Invalid, "A client without a client_secret must use PKCE (uses_pkce).")
	}
	return nil
}
