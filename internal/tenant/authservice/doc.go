// Package authservice lets agents act for people at other services: it obtains OAuth 2.0 tokens
// with a person's consent, keeps them sealed, refreshes them in time and hands them out.
//
// Terms: a Provider is an authorization server and the client that a workspace has there. A
// Token belongs to a user (an Owner), perhaps for one agent; its owner may let further agents
// use it, which is a Connection. An Event is an entry of the user's audit log.
//
// The life of a token:
//
//  1. Authenticate looks for a token with the requested scopes. If there is such a token, it
//     is handed out (completed). If not, a request for consent is stored, and the answer is
//     the URL that the user must visit (pending) and the request's id.
//  2. The user consents at the provider, which sends the browser back with a code and the state.
//     The user is told who would get the account (Asked), and agrees. Complete claims the request
//     that the state names, exchanges the code, and stores the token and the end of the request in
//     one transaction.
//  3. That write wakes the callers in Wait.
//  4. A caller that needs a token near its end takes the token's lease and asks the provider
//     for another token (refresh.go); all other callers wait for that write.
//  5. DeleteToken revokes it at the provider and erases it.
//
// Security:
//
//   - A state is random, is stored as a hash, is valid for ten minutes and for one callback,
//     and belongs to one workspace, provider and user. The code is bound to the request by
//     PKCE, whose verifier is sealed.
//   - Tokens, verifiers and client secrets are sealed and bound to workspace and resource. No
//     list, event, log line or error contains such a value; only the code and the text of a
//     provider's error are kept, and no text that repeats a secret (failure).
//   - A provider's secret, and the tokens that were made there, are never sent to a URL that
//     replaced an earlier URL: a caller that changes a URL must send the secret again, and the
//     tokens are given up (Provider.holds).
//   - A token is stored in the partition of its owner, so no other user can name it.
//   - A refresh token may be valid for one use. The generation of a token is the fence: a
//     provider's answer replaces the grant that it follows, or nothing. A provider's grant is
//     written with a separate context, and the write is repeated until it is decided.
//   - The service calls https URLs, at public addresses unless it is configured otherwise; the
//     address is checked when the connection is made; it follows no redirect, and limits the
//     time for and the size of each answer (outbound.go).
//
// Start reading at Service.Authenticate. The states are in token.go and
// request.go.
package authservice
