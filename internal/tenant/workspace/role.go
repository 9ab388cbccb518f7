package workspace

import (
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Role determines what a caller may do in a workspace.
type Role string

// The roles, the strongest first.
const (
	Admin  Role = "admin"  // everything
	Editor Role = "editor" // everything except deleting and changing the permissions of others
	Viewer Role = "viewer" // read access, without secrets
)

// Agent is the role of a deployment's own agent. It cannot be given to a member, key or token.
// An agent may use the agent server of its deployment, and nothing else.
const Agent Role = "agent"

var roles = []Role{Admin, Editor, Viewer}

// ParseRole returns the role of a name; another name is a fault.Invalid.
func ParseRole(name string) (Role, error) {
	if !slices.Contains(roles, Role(name)) {
		return "", fault.New(fault.Invalid, "%q is not a role. Roles are admin, editor and viewer.", name)
	}
	return Role(name), nil
}

// Over reports whether a role may do more than another role. A text that is not a role may do
// nothing.
func (r Role) Over(other Role) bool { return r.rank() < other.rank() }

func (r Role) rank() int {
	if i := slices.Index(roles, r); i >= 0 {
		return i
	}
	return len(roles)
}

// Verb is an action on a resource.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Read   Verb = "read"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Permission is a kind of resource and a verb, for example deployments:create.
type Permission string

// The permissions that Go code names. The permissions of the control plane's operations are
// declared in the OpenAPI document.
const (
	DeploymentsUpdate Permission = "deployments:update"
	RunsCreate        Permission = "runs:create"
	RunsRead          Permission = "runs:read"
)

// permissions says, for each kind of resource, what each role may do to it. No role has a
// permission that is not in the table.
var permissions = map[string]map[Role][]Verb{
	// Revisions belong to their deployments.
	"deployments": {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	// Logs hold no secrets.
	"deployment-logs": {Admin: {Read}, Editor: {Read}, Viewer: {Read}},
	"metrics":         {Admin: {Read}, Editor: {Read}, Viewer: {Read}},
	"integrations":    {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"listeners":       {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	// The permission auth is about the Auth Service.
	"auth": {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	// The permission runs is about everything in an agent server.
	"runs": {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update, Delete}, Viewer: {Read}},
	// The values cannot be read.
	"secrets":  {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"webhooks": {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"events":   {Admin: {Read}, Editor: {Read}, Viewer: {Read}},
	// Members and trust rules belong to their workspaces.
	"workspaces": {Admin: {Create, Read, Update, Delete}, Editor: {Read}, Viewer: {Read}},
	"api-keys":   {Admin: {Create, Read, Update, Delete}},
	"audit-log":  {Admin: {Read}},
}

// May reports whether the role has a permission.
func (r Role) May(p Permission) bool {
	resource, verb, _ := strings.Cut(string(p), ":")
	return slices.Contains(permissions[resource][r], Verb(verb))
}
