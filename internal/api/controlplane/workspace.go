package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Tenancy holds the stores of workspaces, trust rules, API keys and the audit log, and the
// quotas.
type Tenancy struct {
	Workspaces *workspace.Store
	Rules      *trust.Store
	// Keys returns the store of API keys. It may have to wait for the key under which they are
	// stored.
	Keys  func(context.Context) (*apikey.Store, error)
	Audit *audit.Store
	// Quotas reports how much of its quotas the workspace uses.
	Quotas *quota.Usage
}

// GetWorkspace reads the workspace.
func (s server) GetWorkspace(ctx context.Context, _ GetWorkspaceRequestObject) (GetWorkspaceResponseObject, error) {
	w, err := s.Workspaces.Get(ctx, auth.Workspace(ctx))
	if err != nil {
		return nil, err
	}
	shown, err := s.showWorkspace(ctx, w)
	return GetWorkspace200JSONResponse(shown), err
}

// PatchWorkspace renames the workspace.
func (s server) PatchWorkspace(ctx context.Context, request PatchWorkspaceRequestObject) (PatchWorkspaceResponseObject, error) {
	w, err := s.Workspaces.Rename(ctx, auth.Workspace(ctx), request.Body.Name)
	if err != nil {
		return nil, err
	}
	shown, err := s.showWorkspace(ctx, w)
	return PatchWorkspace200JSONResponse(shown), err
}

func (s server) showWorkspace(ctx context.Context, w workspace.Workspace) (Workspace, error) {
	uses, err := s.Quotas.Of(ctx, w.ID)
	quotas := web.ShowAll(uses, func(use quota.Use) Quota { return Quota{Name: string(use.Name), Limit: use.Limit, Used: use.Used} })
	return Workspace{ID: w.ID, Name: w.Name, Role: Role(auth.Of(ctx).Role), CreatedAt: clock.Format(w.Created), Quotas: quotas}, err
}

// ListMembers lists the workspace's members.
func (s server) ListMembers(ctx context.Context, _ ListMembersRequestObject) (ListMembersResponseObject, error) {
	members, err := s.Workspaces.Members(ctx, auth.Workspace(ctx))
	return ListMembers200JSONResponse{Resources: web.ShowAll(members, showMember)}, err
}

// AddMember makes a person a member.
func (s server) AddMember(ctx context.Context, request AddMemberRequestObject) (AddMemberResponseObject, error) {
	body := request.Body
	m, err := s.Workspaces.AddMember(ctx, auth.Workspace(ctx), body.User, value(body.Issuer), workspace.Role(body.Role), web.StoreAnswer(ctx, func(m workspace.Member) (web.Send, string, int64, error) {
		return AddMember201JSONResponse(showMember(m)).VisitAddMemberResponse, m.Identity(), m.Version(), nil
	})...)
	web.ShowVersion(ctx, m.Identity(), m.Version())
	return AddMember201JSONResponse(showMember(m)), err
}

// GetMember reads a member.
func (s server) GetMember(ctx context.Context, request GetMemberRequestObject) (GetMemberResponseObject, error) {
	m, err := s.Workspaces.Member(ctx, auth.Workspace(ctx), request.MemberID)
	web.ShowVersion(ctx, m.Identity(), m.Version())
	return GetMember200JSONResponse(showMember(m)), err
}

// PatchMember gives a member another role.
func (s server) PatchMember(ctx context.Context, request PatchMemberRequestObject) (PatchMemberResponseObject, error) {
	m, err := s.Workspaces.SetRole(ctx, auth.Workspace(ctx), request.MemberID, workspace.Role(request.Body.Role), web.ExpectedVersions(ctx))
	web.ShowVersion(ctx, m.Identity(), m.Version())
	return PatchMember200JSONResponse(showMember(m)), err
}

// RemoveMember takes a member out of the workspace.
func (s server) RemoveMember(ctx context.Context, request RemoveMemberRequestObject) (RemoveMemberResponseObject, error) {
	return RemoveMember204Response{}, s.Workspaces.RemoveMember(ctx, auth.Workspace(ctx), request.MemberID, web.ExpectedVersions(ctx))
}

func showMember(m workspace.Member) Member {
	return Member{
		ID: m.ID, User: m.User, Issuer: optional.Of(m.Issuer), Role: Role(m.Role), CreatedAt: clock.Format(m.Created), UpdatedAt: clock.Format(m.Updated),
	}
}

// ListTrustRules lists the workspace's trust rules.
func (s server) ListTrustRules(ctx context.Context, _ ListTrustRulesRequestObject) (ListTrustRulesResponseObject, error) {
	rules, err := s.Rules.List(ctx, auth.Workspace(ctx))
	return ListTrustRules200JSONResponse{Resources: web.ShowAll(rules, showTrustRule)}, err
}

// CreateTrustRule admits jobs of a CI service.
func (s server) CreateTrustRule(ctx context.Context, request CreateTrustRuleRequestObject) (CreateTrustRuleResponseObject, error) {
	body := request.Body
	r, err := s.Rules.Create(ctx, auth.Workspace(ctx), trust.Rule{
		Name: value(body.Name), Issuer: body.Issuer, Role: workspace.Role(body.Role), Claims: body.Claims,
	}, web.StoreAnswer(ctx, func(r trust.Rule) (web.Send, string, int64, error) {
		return CreateTrustRule201JSONResponse(showTrustRule(r)).VisitCreateTrustRuleResponse, "", web.Untagged, nil
	})...)
	return CreateTrustRule201JSONResponse(showTrustRule(r)), err
}

// DeleteTrustRule deletes a trust rule.
func (s server) DeleteTrustRule(ctx context.Context, request DeleteTrustRuleRequestObject) (DeleteTrustRuleResponseObject, error) {
	return DeleteTrustRule204Response{}, s.Rules.Delete(ctx, auth.Workspace(ctx), request.RuleID)
}

func showTrustRule(r trust.Rule) TrustRule {
	return TrustRule{ID: r.ID, Name: r.Name, Issuer: r.Issuer, Role: Role(r.Role), Claims: r.Claims, CreatedAt: clock.Format(r.Created)}
}
