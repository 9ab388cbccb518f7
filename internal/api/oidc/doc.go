// Package oidc authenticates requests by JSON Web Tokens of OpenID Connect issuers: of people, who
// are members of a workspace, and of jobs of a CI service, which a workspace's trust rules admit.
//
// Only issuers that the server was configured with are asked for anything, so that nobody can make
// the server call an address of theirs. A token must be signed with an asymmetric algorithm by a
// key that the issuer publishes, be meant for the audience that is configured, and be valid now,
// give or take a minute. Which workspace it is for the request says, as X-Tenant-Id.
//
// An issuer's keys are kept for an hour. A key that is not among them is looked for at once, but
// not more often than every half minute, so that tokens with invented keys do not become requests
// to the issuer. While it does not answer, the keys known before go on for a day.
package oidc
