package authservice

import "strings"

// gitHubTokens ends the token_url of github.com and of each GitHub Enterprise server.
const gitHubTokens = "/login/oauth/access_token"

// gitHubScopes has the scopes that a scope of GitHub contains. GitHub does not name them in its
// answer when they were requested together with the scope that contains them.
var gitHubScopes = map[string][]string{
	"repo":                  {"repo:status", "repo_deployment", "public_repo", "repo:invite", "security_events"},
	"admin:repo_hook":       {"write:repo_hook", "read:repo_hook"},
	"write:repo_hook":       {"read:repo_hook"},
	"admin:org":             {"write:org", "read:org", "manage_runners:org"},
	"write:org":             {"read:org"},
	"admin:public_key":      {"write:public_key", "read:public_key"},
	"write:public_key":      {"read:public_key"},
	"admin:gpg_key":         {"write:gpg_key", "read:gpg_key"},
	"write:gpg_key":         {"read:gpg_key"},
	"admin:ssh_signing_key": {"write:ssh_signing_key", "read:ssh_signing_key"},
	"write:ssh_signing_key": {"read:ssh_signing_key"},
	"user":                  {"read:user", "user:email", "user:follow"},
	"project":               {"read:project"},
	"write:discussion":      {"read:discussion"},
	"write:packages":        {"read:packages"},
	"codespace":             {"codespace:secrets"},
	"audit_log":             {"read:audit_log"},
}

// contained returns the scopes that granted scopes of the provider contain.
func (c conversation) contained(granted []string) (scopes []string) {
	if !strings.HasSuffix(c.Endpoint.TokenURL, gitHubTokens) {
		return nil
	}
	for _, scope := range granted {
		scopes = append(scopes, gitHubScopes[scope]...)
	}
	return scopes
}
