// Package oidc authenticates requests by JSON Web Tokens of OpenID Connect issuers: of people, who
// are members of a workspace, and of jobs of a CI service, which a workspace's trust rules admit.
//
// The server sends requests only to issuers from its configuration, so that no caller can make
// the server call an address of the caller's choice. A token must be signed with an asymmetric
// algorithm by a key that the issuer publishes, be meant for the configured audience, and be
// valid now, with a tolerance of one minute. The request names the workspace of the token, in
// X-Tenant-Id.
//
// An issuer's keys are kept for an hour. The server asks for an unknown key at once, but not
// more often than every half minute, so that tokens with invented keys do not become requests
// to the issuer. While the issuer does not answer, the keys known before remain valid for a
// day.
package oidc
