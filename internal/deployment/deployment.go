package deployment

import (
	"encoding/json"
	"time"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// Status is how far a deployment is.
type Status string

const (
	// AwaitingDatabase: created. The first rollout provisions what it needs.
	AwaitingDatabase Status = "AWAITING_DATABASE"
	// Ready: provisioned. It says nothing about its revisions.
	Ready Status = "READY"
	// AwaitingDelete: deleted. The teardown erases it.
	AwaitingDelete Status = "AWAITING_DELETE"
)

// Ref names a deployment. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment string
}

// Key is the deployment's storage key.
func (r Ref) Key() table.Key { return keys.Deployment(r.Workspace, r.Deployment) }

// Revision names one of the deployment's revisions.
func (r Ref) Revision(id string) revision.Ref {
	return revision.Ref{Workspace: r.Workspace, Deployment: r.Deployment, Revision: id}
}

// SourceConfig is the interface's SourceConfig without what is derived from other things. A nil member is null.
type SourceConfig struct {
	IntegrationID  *string         `json:"integration_id"`
	RepoURL        *string         `json:"repo_url"`
	DeploymentType *string         `json:"deployment_type"`
	BuildOnPush    *bool           `json:"build_on_push"`
	CustomURL      *string         `json:"custom_url"`
	ResourceSpec   json.RawMessage `json:"resource_spec,omitempty"`
	ListenerID     *string         `json:"listener_id"`
	ListenerConfig *ListenerConfig `json:"listener_config"`
	InstallCommand *string         `json:"install_command"`
	BuildCommand   *string         `json:"build_command"`
}

// ListenerConfig is the interface's ListenerConfig.
type ListenerConfig struct {
	K8sNamespace *string `json:"k8s_namespace"`
}

// Secret is an environment variable of the agent.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Spec is what a deployment was asked to be.
type Spec struct {
	Name           string          `json:"name"`
	Source         revision.Source `json:"source"`
	SourceConfig   SourceConfig    `json:"source_config"`
	RevisionConfig revision.Config `json:"source_revision_config"`
	// Secrets and Credentials are sealed, bound to workspace and deployment; nil when there are none.
	Secrets     []byte `json:"secrets,omitempty"`
	Credentials []byte `json:"credentials,omitempty"`
}

// Deployment is an agent that a team runs.
type Deployment struct {
	Ref
	Spec
	Created, Updated time.Time
	Status           Status
	// Latest is the newest revision, Active the one that serves, "" before the first was promoted.
	Latest, Active string
	// Slot is the revision in flight, or the last that was; Busy says that it is in flight.
	Slot string
	Busy bool
	// Retiring is the revision that was active before, until its release was removed.
	Retiring string
	// CommitSHA is the commit that the newest revision was built from, "" before.
	CommitSHA string
	// Graphs are the ids of the graphs that the active revision serves.
	Graphs []string
	// version counts the changes; writes are made under the condition that it is the one read.
	version int64
}

const kind = "deployment"

const (
	attrStatus   = "status"
	attrLatest   = "latest"
	attrActive   = "active"
	attrSlot     = "slot"
	attrBusy     = "busy"
	attrRetiring = "retiring"
	attrGraphs   = "graphs"
	attrCommit   = "commit"
)

func decode(ref Ref, item *table.Item) (Deployment, error) {
	d, err := decodeHead(ref, item)
	if err != nil {
		return Deployment{}, err
	}
	return d, record.Decode(item, &d.Spec)
}

// decodeHead reads all but the Spec, which is most of the work.
func decodeHead(ref Ref, item *table.Item) (Deployment, error) {
	if err := record.Check(item, kind); err != nil {
		return Deployment{}, err
	}
	d := Deployment{
		Ref:       ref,
		Status:    Status(item.Text(attrStatus)),
		Latest:    item.Text(attrLatest),
		Active:    item.Text(attrActive),
		Slot:      item.Text(attrSlot),
		Busy:      item.Bool(attrBusy),
		Retiring:  item.Text(attrRetiring),
		CommitSHA: item.Text(attrCommit),
		version:   item.Int(record.Version),
	}
	var err error
	if d.Created, d.Updated, err = record.Times(item); err != nil {
		return Deployment{}, err
	}
	if graphs := item.Text(attrGraphs); graphs != "" {
		if err := json.Unmarshal([]byte(graphs), &d.Graphs); err != nil {
			return Deployment{}, err
		}
	}
	return d, nil
}

// change returns a write of the deployment under the condition that nobody changed it since it was read.
func (d Deployment) change(now time.Time, set table.Attrs) table.Update {
	return record.Change(d.Key(), now, set, table.Equals(record.Version, d.version))
}

// revisionSpec is what a revision made now is made from.
func (d Deployment) revisionSpec() revision.Spec {
	return revision.Spec{
		Source: d.Source, Config: d.RevisionConfig, RepoURL: d.SourceConfig.RepoURL,
		ResourceSpec: d.SourceConfig.ResourceSpec, Secrets: d.Secrets, Credentials: d.Credentials,
	}
}
