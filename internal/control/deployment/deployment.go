package deployment

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Status is the state of a deployment.
type Status string

const (
	// AwaitingDatabase: created. The first rollout provisions the deployment.
	AwaitingDatabase Status = "AWAITING_DATABASE"
	// Ready: provisioned, or the first rollout ended before that. This status says nothing about
	// the deployment's revisions.
	Ready Status = "READY"
	// AwaitingDelete: deleted. The teardown stops the deployment at once and erases it, after
	// its recovery window if it has a recovery window.
	AwaitingDelete Status = "AWAITING_DELETE"
)

// Ref names a deployment. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment string
}

// Key is the deployment's storage key.
func (r Ref) Key() table.Key { return keys.Deployment(r.Workspace, r.Deployment) }

// RefOf names the deployment of a revision.
func RefOf(ref revision.Ref) Ref { return Ref{Workspace: ref.Workspace, Deployment: ref.Deployment} }

// Revision names one of the deployment's revisions.
func (r Ref) Revision(id string) revision.Ref {
	return revision.Ref{Workspace: r.Workspace, Deployment: r.Deployment, Revision: id}
}

// SourceConfig is the interface's SourceConfig without the members that are derived from other
// data. A nil member is null.
type SourceConfig struct {
	IntegrationID  *string         `json:"integration_id,omitempty"`
	RepoURL        *string         `json:"repo_url,omitempty"`
	DeploymentType *string         `json:"deployment_type,omitempty"`
	BuildOnPush    *bool           `json:"build_on_push,omitempty"`
	CustomURL      *string         `json:"custom_url,omitempty"`
	ResourceSpec   json.RawMessage `json:"resource_spec,omitempty"`
	ListenerID     *string         `json:"listener_id,omitempty"`
	ListenerConfig *ListenerConfig `json:"listener_config,omitempty"`
	InstallCommand *string         `json:"install_command,omitempty"`
	BuildCommand   *string         `json:"build_command,omitempty"`
}

// ListenerConfig is the interface's ListenerConfig.
type ListenerConfig struct {
	K8sNamespace *string `json:"k8s_namespace,omitempty"`
}

// Secret is an environment variable of the agent.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Options are the settings of a deployment that any source can have. They can be changed without
// a new revision; nil in a request changes nothing.
type Options struct {
	// AutoRollback asks that the previous revision replaces a revision that does not stay
	// healthy; nil does not ask for it.
	AutoRollback *bool `json:"auto_rollback,omitempty"`
	// ReadinessTimeout is how many seconds a release may take to become healthy; nil for the
	// limit of the target that runs it.
	ReadinessTimeout *int `json:"readiness_timeout_seconds,omitempty"`
	// CanaryPercent is how many percent of the threads a release serves on trial before it is
	// promoted; nil and 0 for no trial. CanarySeconds is for how long, nil for the default.
	CanaryPercent *int `json:"canary_percent,omitempty"`
	CanarySeconds *int `json:"canary_seconds,omitempty"`
	// DisplayName is the name that people use for it; nil when that is its name.
	DisplayName *string `json:"display_name,omitempty"`
}

// Spec is the user's request for a deployment.
type Spec struct {
	Name           string          `json:"name"`
	Source         revision.Source `json:"source"`
	SourceConfig   SourceConfig    `json:"source_config"`
	RevisionConfig revision.Config `json:"source_revision_config"`
	// Secrets and Credentials are sealed, bound to workspace and deployment; nil when there
	// are no such values.
	Secrets     []byte `json:"secrets,omitempty"`
	Credentials []byte `json:"credentials,omitempty"`
	// SecretReferences are variables whose values are kept in secrets of the workspace or, if
	// a listener runs the releases, in secrets of its cluster.
	SecretReferences []compute.SecretReference `json:"secret_references,omitempty"`
	Options

	// ComputeTier is the size of each replica, nil when the type defines it; DatabaseTier is
	// the tier of a database of the deployment's own, nil if it has no such database.
	ComputeTier  *string `json:"compute_tier,omitempty"`
	DatabaseTier *string `json:"database_tier,omitempty"`
	// TracingProject is the id of the tracing project.
	TracingProject string `json:"tracing_project,omitempty"`
}

// Deployment is an agent that a team runs.
type Deployment struct {
	Ref
	Spec
	Created, Updated time.Time
	Status           Status
	// Latest is the newest revision. Active is the revision that serves, "" before the first
	// revision was promoted.
	Latest, Active string
	// Slot is the revision in flight, or was the last in flight; Busy says that it is in flight.
	Slot string
	Busy bool
	// Next is the newest revision that waits for the slot, "" when no revision waits.
	Next string
	// Retiring is the revision that was active before, until its release was removed.
	Retiring string
	// Previous is the revision that was active before the present active revision, "" before
	// the second revision was promoted.
	Previous string
	// CommitSHA is the commit that the newest revision was built from, "" before the build.
	CommitSHA string
	// ImageVersion is the version of the agent server that the newest revision was made for,
	// "" when the version is not known.
	ImageVersion string
	// Graphs are the ids of the graphs that the active revision serves.
	Graphs []string
	// Descriptions describe the graphs, from the active revision's configuration file.
	Descriptions map[string]string
	// Encrypted is set if a revision was promoted whose repository encrypts what the agent server
	// stores. It stays set: what is stored can only be read by such a revision.
	Encrypted bool
	// Auth is set if the active revision has its repository's own authentication, which the
	// agent server asks about every request.
	Auth bool
	// Settings are requests of the active revision's configuration file to the agent server.
	Settings build.Settings
	// Forced is set if the deployment was deleted by force: only the teardown still sees it.
	Forced bool
	// Crashed is when the agent that serves ended last; zero if it has recovered since.
	Crashed time.Time
	// Canary is how many percent of the threads the revision in the slot serves.
	Canary int
	// Teardown is the number of the newest teardown, 0 before the first deletion: only the
	// newest teardown does anything.
	Teardown int
	// PurgeAt is when the recovery window of a deleted deployment ends, zero when it has no
	// recovery window. Stopped says that nothing of the deployment runs any more; Purging that
	// it cannot be undeleted any more, even before PurgeAt.
	PurgeAt          time.Time
	Stopped, Purging bool
	// Leftover are revisions from before a deletion that was undone. Their releases are
	// removed before anything is deployed.
	Leftover []string
	// watched is the stored deployment's settings for pushes.
	watched push.Watch
	// referred are the references of the stored deployment.
	referred []compute.SecretReference
	// restarts are the newest restarts whose ends were reported, the newest at the end.
	restarts string
	// waiting is the newest restart that was reported to wait for room.
	waiting string
	// event is the newest event of the deployment.
	event string
	// replicas is how many replicas are counted for the deployment in the workspace's quota.
	replicas int64
	// version counts the changes; writes are made under the condition that it is still the same.
	version int64
}

const kind = "deployment"

const (
	attrStatus       = "status"
	attrLatest       = "latest"
	attrActive       = "active"
	attrSlot         = "slot"
	attrBusy         = "busy"
	attrNext         = "next"
	attrImage        = "image_version"
	attrRetiring     = "retiring"
	attrPrevious     = "previous"
	attrGraphs       = "graphs"
	attrDescriptions = "descriptions"
	attrAuth         = "auth"
	attrEncrypted    = "encrypted"
	attrSettings     = "settings"
	attrCommit       = "commit"
	attrEvent        = "event"
	attrForced       = "forced"
	attrCrashed      = "crashed"
	attrCanary       = "canary"
	attrRestart      = "restart"
	attrWaiting      = "waiting_restart"
	attrTeardown     = "teardown"
	attrPurge        = "purge_at"
	attrStopped      = "stopped"
	attrPurging      = "purging"
	attrLeftover     = "leftover"
	attrReplicas     = "replicas"
)

// decode reads a deployment from its item.
func decode(ref Ref, item *table.Item) (Deployment, error) {
	d, err := decodeHead(ref, item)
	if err != nil {
		return Deployment{}, err
	}
	r := record.Reader{Item: item}
	r.Decode(&d.Spec)
	d.watched, d.referred = d.watch(), d.SecretReferences
	return d, r.Err()
}

// decodeHead reads a deployment without its Spec, which would be most of the work.
func decodeHead(ref Ref, item *table.Item) (Deployment, error) {
	r := record.Read(item, kind)
	d := Deployment{
		Ref:       ref,
		Status:    Status(item.Text(attrStatus)),
		Latest:    item.Text(attrLatest),
		Active:    item.Text(attrActive),
		Slot:      item.Text(attrSlot),
		Busy:      item.Bool(attrBusy),
		Next:      item.Text(attrNext),
		Retiring:  item.Text(attrRetiring),
		Previous:  item.Text(attrPrevious),
		CommitSHA: item.Text(attrCommit),
		Auth:      item.Bool(attrAuth),
		Encrypted: item.Bool(attrEncrypted),
		Forced:    item.Bool(attrForced),
		Canary:    int(item.Int(attrCanary)),
		Teardown:  int(item.Int(attrTeardown)),
		Stopped:   item.Bool(attrStopped),
		Purging:   item.Bool(attrPurging),
		Leftover:  leftoverOf(item),
		Created:   r.Created(),
		Updated:   r.Updated(),
		Crashed:   r.Time(attrCrashed),
		PurgeAt:   r.Time(attrPurge),

		ImageVersion: item.Text(attrImage),
		event:        item.Text(attrEvent),
		restarts:     item.Text(attrRestart),
		waiting:      item.Text(attrWaiting),
		replicas:     item.Int(attrReplicas),
		version:      item.Int(record.Version),
	}
	r.JSON(attrGraphs, &d.Graphs)
	r.JSON(attrDescriptions, &d.Descriptions)
	r.JSON(attrSettings, &d.Settings)
	return d, r.Err()
}

// leftoverOf returns nil when there are no leftover revisions, as in a new deployment.
func leftoverOf(item *table.Item) []string {
	if left := item.Text(attrLeftover); left != "" {
		return strings.Fields(left)
	}
	return nil
}

// change returns a write of the deployment under the condition that it is unchanged.
func (d Deployment) change(now time.Time, set table.Attrs) table.Update {
	return record.Change(d.Key(), now, set, d.unchanged())
}

// unchanged is the condition that nobody changed the deployment since it was read.
func (d Deployment) unchanged() table.Cond { return table.Equals(record.Version, d.version) }

// noNewEvent is the condition that the deployment had no event since it was read: a crash
// or recovery of its agent does not change the version.
func (d Deployment) noNewEvent() table.Cond {
	if d.event == "" {
		return table.Cond{}
	}
	return table.Equals(attrEvent, d.event)
}

// ReadyLimit is how long a release may take to become healthy, 0 for the limit of its target.
func (d Deployment) ReadyLimit() time.Duration {
	if d.ReadinessTimeout == nil {
		return 0
	}
	return time.Duration(*d.ReadinessTimeout) * time.Second
}

// revisionSpec is the spec of a revision that is created now.
func (d Deployment) revisionSpec() revision.Spec {
	return revision.Spec{
		Source: d.Source, Config: d.RevisionConfig, RepoURL: d.SourceConfig.RepoURL, IntegrationID: d.SourceConfig.IntegrationID,
		InstallCommand: d.SourceConfig.InstallCommand, BuildCommand: d.SourceConfig.BuildCommand,
		ResourceSpec: d.SourceConfig.ResourceSpec, Secrets: d.Secrets, Credentials: d.Credentials,
		SecretReferences: d.SecretReferences, ComputeTier: d.ComputeTier,
	}
}

// Version counts the changes of a deployment. As long as the version stays the same, all data
// that clients see of the deployment stays the same.
func (d Deployment) Version() int64 { return d.version }

// expected checks the version of a deployment that was read. Every write has the condition that
// the version is still the same when the change is written.
func (d Deployment) expected(versions record.Versions) error {
	return versions.Check(d.version, "Deployment ID "+d.Deployment)
}

// ThreadTTL is the configuration file's time to live for threads whose creation does not set
// it; nil: they live for ever.
func (d Deployment) ThreadTTL() *thread.TTL {
	ttl := d.Settings.Threads
	if ttl == nil || ttl.Minutes == 0 {
		return nil
	}
	return &thread.TTL{Strategy: thread.Strategy(ttl.Strategy), Minutes: ttl.Minutes}
}

// ThreadTTL returns the ThreadTTL of a deployment.
func (s *Store) ThreadTTL(ctx context.Context, workspace, deployment string) (*thread.TTL, error) {
	d, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err != nil {
		return nil, err
	}
	return d.ThreadTTL(), nil
}
