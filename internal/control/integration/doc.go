// Package integration holds what lets a workspace clone repositories that are not public:
// installations of the server's GitHub App, and credentials for other git hosts. A deployment names
// either by its id (source_config.integration_id).
//
// The life of an installation:
//
//  1. BeginInstall stores a request and returns the link at which a person installs the App. The
//     link carries the request's state.
//  2. GitHub sends the browser back with the state, the installation's id and a code. All three may
//     be made up by whoever opens the address, so that CompleteInstall claims the request that the
//     state names, asks GitHub as the App what the installation is, and as the person who consented
//     (the code) whether it is theirs: the account's own, or an organization's of which they are an
//     owner. Only then the installation is bound to the request's workspace.
//  3. CloneCredentials asks GitHub for a token that reads one repository, and keeps it in its
//     process until shortly before its end. What a webhook tells another process does not reach it,
//     and need not: GitHub refuses the token, the clone fails, and CloneRefused asks GitHub why.
//  4. Uninstall takes the binding away, and the App from the account when no other workspace uses
//     it. An installation that was removed at GitHub is told by a webhook (Removed), or by GitHub's
//     refusal of the next token.
//
// What keeps it safe:
//
//   - A state is random, is stored as a hash, is good for an hour and for one callback, and belongs
//     to one workspace.
//   - The App's JWT lives nine minutes. A token for a clone reads the contents of one repository.
//     Tokens are kept in memory only; the token of the person who installs is forgotten when the
//     question is answered.
//   - The token of a Credential is sealed, bound to workspace and credential, and no read returns
//     it.
//   - No error holds a token, a code, or a URL that was given to the server.
//   - A redirect to another host is not followed; time and size of GitHub's answers are bounded.
//
// GitHub's failures become faults with words for people: a fault.Conflict is one that waiting does
// not mend (suspended, removed, repository not selected), a fault.Unavailable one that it may (rate
// limit, no answer).
package integration
