package authservice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/record"
)

// NewDiscovered is the request to create a provider from an MCP server.
type NewDiscovered struct {
	Workspace, ProviderID, Name string
	MCPServerURL                string
	// RedirectURI is the address to which the provider will send users back.
	RedirectURI string
}

// resourceMetadata is the metadata of an MCP server about its authorization (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
}

// serverMetadata is the metadata of an authorization server (RFC 8414).
type serverMetadata struct {
	Issuer       string   `json:"issuer"`
	AuthURL      string   `json:"authorization_endpoint"`
	TokenURL     string   `json:"token_endpoint"`
	Registration string   `json:"registration_endpoint"`
	Revocation   string   `json:"revocation_endpoint"`
	Challenges   []string `json:"code_challenge_methods_supported"`
	NamesIssuer  bool     `json:"authorization_response_iss_parameter_supported"`

	ClientAuths []ClientAuth `json:"token_endpoint_auth_methods_supported"`
}

// Discover creates a provider from the URL of an MCP server: the MCP server names its
// authorization server, the authorization server describes how it is used, and the service
// registers itself there as a client. Metadata that cannot be found, or that breaks a rule, is
// a fault.Invalid.
func (s *Service) Discover(ctx context.Context, in NewDiscovered) (Provider, error) {
	if err := cmp.Or(s.checkURL("mcp_server_url", in.MCPServerURL), checkRedirect(in.RedirectURI)); err != nil {
		return Provider{}, err
	}
	if _, err := s.Provider(ctx, in.Workspace, in.ProviderID); err == nil {
		// Look before a client is registered for nothing.
		return Provider{}, fault.New(fault.Conflict, "An auth provider with the provider_id %s already exists.", in.ProviderID)
	} else if !fault.Is(err, fault.NotFound) {
		return Provider{}, err
	}
	calls, done := s.calls(ctx)
	defer done()
	resource, issuer, err := s.findIssuer(calls, in.MCPServerURL)
	if err != nil {
		return Provider{}, err
	}
	server, err := s.findServer(calls, issuer)
	if err != nil {
		return Provider{}, err
	}
	client, err := s.register(calls, server, in.RedirectURI)
	if err != nil {
		return Provider{}, err
	}
	spec := ProviderSpec{
		Name: in.Name, ClientID: client.ID, AuthURL: server.AuthURL, TokenURL: server.TokenURL, RevocationURL: server.Revocation,
		UsesPKCE: true, CodeChallengeMethod: S256, ClientAuth: client.Auth,
		MCPServerURL: in.MCPServerURL, Dynamic: true, Issuer: server.Issuer, NamesIssuer: server.NamesIssuer, Resource: resource,
	}
	return s.CreateProvider(ctx, NewProvider{Workspace: in.Workspace, ProviderID: in.ProviderID, ProviderSpec: spec, ClientSecret: &client.Secret})
}

// checkRedirect allows only values that can be sent as redirect_uri (RFC 6749, section 3.1.2).
func checkRedirect(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || len(raw) > outbound.MaxURL {
		return fault.New(fault.Invalid, "The redirect URI must be an absolute URL without a fragment.")
	}
	return nil
}

// protectedResource is the well-known name of the metadata of a resource (RFC 9728, section 3).
const protectedResource = "oauth-protected-resource"

// findIssuer asks an MCP server for its authorization server. A server without metadata is its
// own authorization server, as it was before RFC 9728.
func (s *Service) findIssuer(ctx context.Context, server string) (resource, issuer string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", "", fault.New(fault.Invalid, "mcp_server_url must be an absolute URL.")
	}
	origin := &url.URL{Scheme: u.Scheme, Host: u.Host}
	addresses := []string{wellKnown(u, protectedResource)}
	if strings.Trim(u.Path, "/") != "" {
		addresses = append(addresses, wellKnown(origin, protectedResource))
	}
	if named := s.challenge(ctx, server); named != "" {
		addresses = append([]string{named}, addresses...)
	}
	var ofAnother error
	for _, address := range addresses {
		var metadata resourceMetadata
		ok, err := s.getJSON(ctx, "resource_metadata", address, &metadata)
		switch {
		case err != nil:
			return "", "", err
		case !ok:
		case !same(metadata.Resource, server) && !metadata.covers(u, address):
			ofAnother = fault.New(fault.Invalid, "The MCP server's metadata is of another resource.")
		case len(metadata.Servers) == 0:
			return "", "", fault.New(fault.Invalid, "The MCP server's metadata names no authorization server.")
		default:
			return metadata.Resource, metadata.Servers[0], nil
		}
	}
	return "", origin.String(), ofAnother
}

// covers reports whether the metadata at an address is of a resource that contains a server: many
// servers name their origin. Metadata of another resource must not be used, so it has to be at the
// place where only the owner of its resource can put it (RFC 9728, section 3.3).
func (m resourceMetadata) covers(server *url.URL, address string) bool {
	resource, err := url.Parse(m.Resource)
	return err == nil && resource.Scheme == server.Scheme && resource.Host == server.Host &&
		strings.HasPrefix(server.Path+"/", strings.TrimSuffix(resource.Path, "/")+"/") && wellKnown(resource, protectedResource) == address
}

// wellKnown puts the well-known part between host and path (RFC 8414, section 3.1; RFC 9728,
// section 3.1).
func wellKnown(u *url.URL, suffix string) string {
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/" + suffix + strings.TrimSuffix(u.Path, "/"), RawQuery: u.RawQuery}
	return at.String()
}

// same compares identifiers. A single slash at the end of an origin makes no difference.
func same(a, b string) bool {
	return a != "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

var resourceParam = regexp.MustCompile(`(?i)\bresource_metadata="([^"]+)"`)

// challenge returns the metadata URL that a server names when it is called without a token
// (RFC 9728, section 5.1), or "" if it names no URL.
func (s *Service) challenge(ctx context.Context, server string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server, nil)
	if err != nil {
		return ""
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	match := resourceParam.FindStringSubmatch(strings.Join(answer.Header.Values("WWW-Authenticate"), ", "))
	if match == nil || answer.StatusCode != http.StatusUnauthorized {
		return ""
	}
	return match[1]
}

// findServer reads the metadata of an authorization server, at the places of RFC 8414 and of
// OpenID Connect Discovery.
func (s *Service) findServer(ctx context.Context, issuer string) (serverMetadata, error) {
	var server serverMetadata
	if err := s.checkURL("authorization_servers", issuer); err != nil {
		return server, err
	}
	u, err := url.Parse(issuer)
	if err != nil || u.RawQuery != "" {
		return server, fault.New(fault.Invalid, "authorization_servers must name issuers without a query.")
	}
	candidates := []string{wellKnown(u, "oauth-authorization-server"), wellKnown(u, "openid-configuration")}
	if strings.Trim(u.Path, "/") != "" {
		candidates = append(candidates, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
	}
	for _, at := range candidates {
		server = serverMetadata{}
		ok, err := s.getJSON(ctx, "authorization_servers", at, &server)
		if err != nil {
			return serverMetadata{}, err
		}
		if ok {
			return server, s.checkServer(server, issuer)
		}
	}
	return serverMetadata{}, fault.New(fault.Invalid, "The authorization server has no metadata (RFC 8414).")
}

func (s *Service) checkServer(server serverMetadata, issuer string) error {
	switch {
	case !same(server.Issuer, issuer): // RFC 8414, section 3.3
		return fault.New(fault.Invalid, "The authorization server's metadata is of another issuer.")
	case !slices.Contains(server.Challenges, S256):
		return fault.New(fault.Invalid, "The authorization server does not support PKCE with S256.")
	case server.Registration == "":
		return fault.New(fault.Invalid, "The authorization server has no dynamic client registration (RFC 7591). Create the provider with a client_id.")
	}
	return cmp.Or(
		s.checkURL("authorization_endpoint", server.AuthURL), s.checkURL("token_endpoint", server.TokenURL),
		s.checkURL("registration_endpoint", server.Registration),
	)
}

// getJSON reads a document, and reports whether there is one.
func (s *Service) getJSON(ctx context.Context, field, at string, into any) (bool, error) {
	if err := s.checkURL(field, at); err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false, fault.New(fault.Invalid, "%s must be an absolute URL.", field)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(request)
	if err != nil {
		return false, fault.New(fault.Invalid, "%s: %s", field, failed(err).words)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 500:
		return false, fault.New(fault.Unavailable, "%s: the server answered with status %d.", field, answer.StatusCode)
	case answer.StatusCode != http.StatusOK:
		return false, nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, fault.New(fault.Invalid, "%s: %s", field, failed(err).words)
	}
	// Some servers answer every request with a page that is not JSON.
	return json.Unmarshal(body, into) == nil, nil
}

// client is the result of a registration.
type client struct {
	ID     string     `json:"client_id"`
	Secret string     `json:"client_secret"`
	Auth   ClientAuth `json:"token_endpoint_auth_method"`
}

// register registers the service as a client (RFC 7591).
func (s *Service) register(ctx context.Context, server serverMetadata, redirect string) (client, error) {
	methods := []ClientAuth{AuthBasic, AuthPost, AuthNone}
	first := slices.IndexFunc(methods, func(method ClientAuth) bool { return slices.Contains(server.ClientAuths, method) })
	// The method is AuthBasic if the metadata names no methods (RFC 8414, section 2).
	chosen := methods[max(first, 0)]
	body := record.Encode(map[string]any{
		"client_name": "Slipway", "redirect_uris": []string{redirect}, "response_types": []string{"code"},
		"grant_types": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": chosen,
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.Registration, bytes.NewReader(body))
	if err != nil {
		return client{}, fmt.Errorf("make registration: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(request)
	if err != nil {
		return client{}, fault.New(fault.Invalid, "registration_endpoint: %s", failed(err).words)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusOK {
		return client{}, fault.New(fault.Invalid, "The authorization server refused to register a client (status %d).", answer.StatusCode)
	}
	registered := client{Auth: chosen}
	if err := json.NewDecoder(answer.Body).Decode(&registered); err != nil || registered.ID == "" {
		return client{}, fault.New(fault.Invalid, "The authorization server's registration names no client_id.")
	}
	if registered.Secret == "" || registered.Auth == AuthNone {
		registered.Auth, registered.Secret = AuthNone, ""
	}
	return registered, nil
}
