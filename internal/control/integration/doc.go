// Package integration holds the integrations with which a workspace clones repositories that
// are not public: installations of the server's GitHub App, and credentials for other git
// hosts. A deployment names an installation or credentials by id
// (source_config.integration_id).
//
// The life of an installation:
//
//  1. BeginInstall stores a request and returns the link at which a person installs the App. The
//     link carries the request's state.
//  2. GitHub sends the browser back with the state, the installation's id and a code. Anybody
//     who opens the address can make up all three. Therefore CompleteInstall claims the
//     request that the state names, asks GitHub as the App about the installation, and asks
//     GitHub as the person who consented (the code) whether the installation is theirs: it is
//     at their own account, or at an organization of which they are an owner. Only then the
//     installation is bound to the request's workspace.
//  3. CloneCredentials asks GitHub for a token that reads one repository, and keeps it in its
//     process until shortly before it expires. A webhook that another process receives does
//     not reach this process, and need not: GitHub refuses the token, the clone fails, and
//     CloneRefused asks GitHub why.
//  4. Uninstall removes the binding, and removes the App from the account when no other
//     workspace uses the installation. The platform learns that an installation was removed at
//     GitHub from a webhook (Removed), or from GitHub's refusal of the next token. An integration
//     that a deployment uses then waits for the next installation at the same account.
//
// Security rules:
//
//   - A state is random, is stored as a hash, is valid for an hour and for one callback, and
//     belongs to one workspace.
//   - The App's JWT is valid for nine minutes. A token for a clone reads the contents of one
//     repository. Tokens are kept in memory only; the token of the person who installs is
//     forgotten when GitHub has answered.
//   - The token of a Credential is sealed, bound to workspace and credential, and no read
//     returns it.
//   - No error holds a token, a code, or a URL that was given to the server.
//   - The client does not follow a redirect to another host; time and size of GitHub's answers
//     are bounded.
//
// GitHub's failures become faults with messages for people. A fault.Conflict is a failure that
// does not go away by waiting (suspended, removed, repository not selected). A
// fault.Unavailable is a failure that may go away by waiting (rate limit, no answer).
package integration
