// Package stack holds the common parts of the functions of one AWS stack: the variables that
// its template gives them, and the adapters and stores that are made from these variables. Each
// of them is made once, at its first use. No request is sent before it is needed, except for the
// data key, which a function reads at its start.
//
// Each package below this package adds a part that only some functions use, so that the other
// functions do not contain its code: where agents run (agents), how they are built and released
// (rollouts), the runner (runners), pushed images (images), uploaded sources (uploads), the output
// of builds and agents (logs), private repositories (repositories) and issuers of tokens (issuers).
package stack
