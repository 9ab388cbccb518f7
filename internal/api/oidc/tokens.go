package oidc

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Tokens turns a token into the caller of the request. Package auth uses it for bearer tokens.
type Tokens struct {
	Verifier   *Verifier
	Workspaces *workspace.Store
	Rules      *trust.Store
}

// Authenticate returns the caller that the token admits to the workspace of the request. A bad
// token is a fault.Unauthorized; a good token that the workspace does not admit is a
// fault.Forbidden.
func (t *Tokens) Authenticate(ctx context.Context, text, workspaceID string) (workspace.Principal, error) {
	token, err := t.Verifier.Verify(ctx, text)
	if err != nil {
		return workspace.Principal{}, err
	}
	workspaceID = strings.ToLower(workspaceID)
	if workspaceID == "" {
		return workspace.Principal{}, fault.New(fault.Forbidden, "A workspace must be specified: a bearer token belongs to no workspace, so the header X-Tenant-Id must name it.")
	}
	p := workspace.Principal{Workspace: workspaceID, Subject: token.Person()}
	if token.Issuer.Members {
		var m workspace.Member
		m, err = t.Member(ctx, workspaceID, token)
		p.Role = m.Role
	} else {
		p.Role, err = t.program(ctx, workspaceID, token)
	}
	if err != nil {
		return workspace.Principal{}, err
	}
	return p, nil
}

// Member returns the member of a workspace that the token of a person stands for. The person is
// found by the email address that the issuer vouches for, or by the token's subject; if both are
// members, the one with the stronger role counts. A person who is no member is a
// fault.Forbidden.
func (t *Tokens) Member(ctx context.Context, workspaceID string, token Token) (workspace.Member, error) {
	stranger := fault.New(fault.Forbidden, "The bearer token's user is not a member of the workspace that X-Tenant-Id names.")
	if !id.Valid(workspaceID) {
		return workspace.Member{}, stranger
	}
	var members []string
	if !strings.Contains(token.Subject, "@") {
		// A subject that looks like an address does not prove that address.
		members = append(members, workspace.MemberID(token.Subject, token.Issuer.URL))
	}
	if email, _ := token.Claims["email"].(string); email != "" && token.Claims["email_verified"] == true {
		members = append(members, workspace.MemberID(email, ""))
	}
	var matched workspace.Member
	for _, member := range members {
		m, err := t.Workspaces.Member(ctx, workspaceID, member)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return workspace.Member{}, err
		case m.Role.Over(matched.Role):
			matched = m
		}
	}
	if matched.ID == "" {
		return workspace.Member{}, stranger
	}
	return matched, nil
}

// program returns the role that a trust rule gives to a job.
func (t *Tokens) program(ctx context.Context, workspaceID string, token Token) (workspace.Role, error) {
	if !id.Valid(workspaceID) {
		return "", fault.New(fault.Forbidden, "No trust rule of the workspace admits this token.")
	}
	rule, err := t.Rules.Admit(ctx, workspaceID, token.Issuer.URL, token.Claims)
	return rule.Role, err
}
