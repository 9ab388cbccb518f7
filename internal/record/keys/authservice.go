package keys

import (
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// AuthProvider is the key of an OAuth provider. A workspace's providers share a partition, so that
// their list is one consistent read.
func AuthProvider(workspace, provider string) table.Key {
	return table.Key{PK: AuthProviders(workspace).PK, SK: provider}
}

// AuthProviders asks for a workspace's OAuth providers, by name.
func AuthProviders(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#AUTH-PROVIDERS"}
}

// AuthRequest is the key of a request for a user's consent.
func AuthRequest(workspace, request string) table.Key {
	return table.Key{PK: "W#" + workspace + "#AUTH-REQUEST#" + request, SK: "REQUEST"}
}

// AuthRequestID reads a request's id back from its key.
func AuthRequestID(key table.Key) string { return key.PK[strings.LastIndexByte(key.PK, '#')+1:] }

// authUserPK escapes the user, because the client chooses the user's id freely.
func authUserPK(workspace, user string) string {
	return "W#" + workspace + "#AUTH-USER#" + url.QueryEscape(user)
}

const authTokenPrefix = "TOKEN#"

// AuthToken is the key of an OAuth token, in the partition of its user.
func AuthToken(workspace, user, token string) table.Key {
	return table.Key{PK: authUserPK(workspace, user), SK: authTokenPrefix + token}
}

// AuthTokenID reads an OAuth token's id back from its key.
func AuthTokenID(key table.Key) string { return strings.TrimPrefix(key.SK, authTokenPrefix) }

// AuthTokens asks for a user's OAuth tokens, oldest first.
func AuthTokens(workspace, user string) table.Query {
	return table.Query{PK: authUserPK(workspace, user), Prefix: authTokenPrefix}
}

// AuthTokenCount is the key of the count of a workspace's OAuth tokens, which is bounded.
func AuthTokenCount(workspace string) table.Key {
	return table.Key{PK: "W#" + workspace + "#AUTH-TOKENS", SK: "COUNT"}
}

const authDefaultPrefix = "DEFAULT#"

// AuthDefault is the key of the note that says which of a user's tokens is used for a provider
// and an agent.
func AuthDefault(workspace, user, provider, agent string) table.Key {
	return table.Key{PK: authUserPK(workspace, user), SK: authDefaultPrefix + provider + "#" + url.QueryEscape(agent)}
}

// AuthDefaults asks for a user's notes that say which token is used.
func AuthDefaults(workspace, user string) table.Query {
	return table.Query{PK: authUserPK(workspace, user), Prefix: authDefaultPrefix}
}

// AuthEvent is the key of an event of a user's tokens. Event ids sort by time.
func AuthEvent(workspace, user, event string) table.Key {
	return table.Key{PK: authUserPK(workspace, user) + "#EVENTS", SK: event}
}

// AuthEvents asks for the events of a user's tokens, oldest first.
func AuthEvents(workspace, user string) table.Query {
	return table.Query{PK: authUserPK(workspace, user) + "#EVENTS"}
}

// AuthConnection is the key of an agent's permission to use a token.
func AuthConnection(workspace, agent, token string) table.Key {
	return table.Key{PK: AuthConnections(workspace, agent).PK, SK: token}
}

// AuthConnections asks for the tokens that an agent may use, the oldest token first.
func AuthConnections(workspace, agent string) table.Query {
	return table.Query{PK: "W#" + workspace + "#AUTH-AGENT#" + url.QueryEscape(agent)}
}

// AuthConnectionListEntry places an agent's permission among the permissions for a token.
func AuthConnectionListEntry(workspace, token, agent string) table.Key {
	return table.Key{PK: "W#" + workspace + "#AUTH-TOKEN#" + token, SK: url.QueryEscape(agent)}
}

// AuthConnectionList asks for the agents that may use a token.
func AuthConnectionList(workspace, token string) table.Query {
	return table.Query{Index: table.ByList, PK: "W#" + workspace + "#AUTH-TOKEN#" + token}
}

// AuthTokenListEntry places a token among the tokens of a provider, which is named by its
// resource id: a provider that is created again under the same name has other tokens.
func AuthTokenListEntry(workspace, provider, user, token string) table.Key {
	return table.Key{PK: "W#" + workspace + "#AUTH-PROVIDER#" + provider, SK: url.QueryEscape(user) + "#" + token}
}

// AuthTokenList asks for the tokens of a provider.
func AuthTokenList(workspace, provider string) table.Query {
	return table.Query{Index: table.ByList, PK: "W#" + workspace + "#AUTH-PROVIDER#" + provider}
}
