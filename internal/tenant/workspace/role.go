package workspace

import (
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Role is what somebody may do in a workspace.
type Role string

// The roles, the strongest first.
const (
	Admin  Role = "admin"  // everything
	Editor Role = "editor" // everything but to delete, and to say who may do what
	Viewer Role = "viewer" // to look, at no secrets
)

// Agent is the role of a deployment's own agent, which nobody can be given: it may use the agent
// server of its deployment, and nothing else.
const Agent Role = "agent"

var roles = []Role{Admin, Editor, Viewer}

// ParseRole returns the role of a name; another name is a fault.Invalid.
func ParseRole(name string) (Role, error) {
	if !slices.Contains(roles, Role(name)) {
		return "", fault.New(fault.Invalid, "%q is not a role: admin, editor and viewer are.", name)
	}
	return Role(name), nil
}

// Over tells whether a role may more than another. A text that is not a role may nothing.
func (r Role) Over(other Role) bool { return r.rank() < other.rank() }

func (r Role) rank() int {
	if i := slices.Index(roles, r); i >= 0 {
		return i
	}
	return len(roles)
}

// Verb is what is done to a resource.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Read   Verb = "read"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Permission is a verb and what it is done to, as deployments:create.
type Permission string

// The permissions that Go code names. Those of the control plane's operations are declared in the
// OpenAPI document.
const (
	DeploymentsUpdate Permission = "deployments:update"
	RunsCreate        Permission = "runs:create"
	RunsRead          Permission = "runs:read"
)

// permissions says, for each kind of resource, what each role may do to it. No role has a
// permission that is not in the table.
var permissions = map[string]map[Role][]Verb{
	"deployments":     {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}}, // with their revisions
	"deployment-logs": {Admin: {Read}, Editor: {Read}, Viewer: {Read}},                                         // which hold no secrets
	"metrics":         {Admin: {Read}, Editor: {Read}, Viewer: {Read}},
	"integrations":    {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"listeners":       {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"auth":            {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},         // the Auth Service
	"runs":            {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update, Delete}, Viewer: {Read}}, // all of an agent server
	"secrets":         {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},         // whose values nobody reads
	"webhooks":        {Admin: {Create, Read, Update, Delete}, Editor: {Create, Read, Update}, Viewer: {Read}},
	"events":          {Admin: {Read}, Editor: {Read}, Viewer: {Read}},
	"workspaces":      {Admin: {Create, Read, Update, Delete}, Editor: {Read}, Viewer: {Read}}, // with members and trust rules
	"api-keys":        {Admin: {Create, Read, Update, Delete}},
	"audit-log":       {Admin: {Read}},
}

// May tells whether the role has a permission.
func (r Role) May(p Permission) bool {
	resource, verb, _ := strings.Cut(string(p), ":")
	return slices.Contains(permissions[resource][r], Verb(verb))
}
