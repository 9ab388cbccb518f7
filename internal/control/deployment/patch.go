package deployment

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Patch is a request to change a deployment. A nil member changes nothing.
type Patch struct {
	Name   *string
	Source *revision.Source
	// RevisionSource is where the revision comes from.
	RevisionSource *revision.Source
	SourceConfig   SourceConfig
	RevisionConfig revision.Config
	// Secrets replaces all secrets when not nil; empty removes them.
	Secrets *[]Secret
	// SecretReferences replaces all references when not nil; empty removes them.
	SecretReferences *[]compute.SecretReference
	Options

	// ComputeTier and DatabaseTier make a revision.
	ComputeTier, DatabaseTier *string
	// AgentURL is the URL that reads show as custom_url while no custom_url is set. If a
	// client sends it back, it changes nothing.
	AgentURL string
	// Revise makes a revision independent of the members of the request.
	Revise bool
	// ValidateOnly asks how the deployment would be after the patch, and changes nothing.
	ValidateOnly bool
	// Expect are the versions that the patch was made for.
	Expect record.Versions
	// Notes are written together with the change, also if the patch changes nothing.
	Notes []Note
}

// Redacted stands for the value of a secret that is not shown. If a client sends it back, it
// means the present value of the secret.
const Redacted = "[redacted]"

// Patch changes a deployment. It also makes a revision if the deployment has a source, and the
// request has a value for the revision's configuration, the secrets or the resource
// specification. A broken rule, or another value for an immutable member, is a fault.Invalid
// and changes nothing.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Deployment, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Deployment, record.Outbox, error) {
		d, o, err := s.patch(ctx, ref, patch)
		if err == nil && !patch.ValidateOnly {
			err = record.AddNotes(ctx, &o, d, patch.Notes...)
		}
		return d, o, err
	})
}

// patch returns the deployment after a patch, and the writes that store it.
func (s *Store) patch(ctx context.Context, ref Ref, patch Patch) (Deployment, record.Outbox, error) {
	var o record.Outbox
	d, err := s.living(ctx, ref)
	if err != nil {
		return d, o, err
	}
	if err := d.expected(patch.Expect); err != nil {
		return d, o, err
	}
	next, err := s.apply(ctx, d, patch)
	if err != nil {
		return d, o, err
	}
	var put putRevision
	if patch.makesRevision() && next.hasSource() {
		if err := s.roomForBuild(next); err != nil {
			return d, o, err
		}
		put = next.newRevision()
	} else if reflect.DeepEqual(next.Spec, d.Spec) {
		return d, o, nil
	}
	if patch.ValidateOnly {
		_, err = s.refer(ctx, next, s.now())
		return s.planned(next, put != nil), o, err
	}
	return s.write(ctx, next, "", put)
}

func (p Patch) makesRevision() bool {
	c := p.RevisionConfig
	return p.Revise || c.RepoRef != nil || c.ConfigPath != nil || c.ImageURI != nil || c.TarballPath != nil ||
		p.SourceConfig.ResourceSpec != nil || p.Secrets != nil || p.SecretReferences != nil || p.ComputeTier != nil || p.DatabaseTier != nil
}

// apply returns the deployment as it would be after the patch, checked as a whole.
func (s *Store) apply(ctx context.Context, d Deployment, p Patch) (Deployment, error) {
	if err := p.immutables(d); err != nil {
		return Deployment{}, err
	}
	c := &d.SourceConfig
	replace(&d.AutoRollback, p.AutoRollback)
	replace(&d.ReadinessTimeout, p.ReadinessTimeout)
	replace(&d.CanaryPercent, p.CanaryPercent)
	replace(&d.CanarySeconds, p.CanarySeconds)
	replace(&d.DisplayName, p.DisplayName)
	replace(&c.RepoURL, p.SourceConfig.RepoURL) // the same URL, perhaps with other credentials
	replace(&c.BuildOnPush, p.SourceConfig.BuildOnPush)
	d.setURL(p.SourceConfig.CustomURL, p.AgentURL)
	replace(&c.InstallCommand, p.SourceConfig.InstallCommand)
	replace(&c.BuildCommand, p.SourceConfig.BuildCommand)
	if p.SourceConfig.ResourceSpec != nil {
		c.ResourceSpec = p.SourceConfig.ResourceSpec
	}
	replace(&d.RevisionConfig.RepoRef, p.RevisionConfig.RepoRef)
	replace(&d.RevisionConfig.ConfigPath, p.RevisionConfig.ConfigPath)
	replace(&d.RevisionConfig.ImageURI, p.RevisionConfig.ImageURI)
	replace(&d.RevisionConfig.TarballPath, p.RevisionConfig.TarballPath)
	if p.RevisionConfig.TrackedPackages != nil {
		d.RevisionConfig.TrackedPackages = p.RevisionConfig.TrackedPackages
	}
	if p.SecretReferences != nil {
		d.SecretReferences = slices.Clone(*p.SecretReferences)
	}
	if err := d.applyTiers(p.ComputeTier, p.DatabaseTier); err != nil {
		return Deployment{}, err
	}
	secrets, err := s.secretsAfter(ctx, d, p)
	if err != nil {
		return Deployment{}, err
	}
	if err := s.check(ctx, d, secrets, p.RevisionConfig.ImageURI); err != nil {
		return Deployment{}, err
	}
	if missing := d.missingSource(); p.Revise && missing != "" {
		return Deployment{}, fault.New(fault.Invalid, "%s is required when source is %s.", missing, d.Source)
	}
	err = s.sealCredentials(ctx, &d)
	if err == nil && p.Secrets != nil {
		err = s.sealSecrets(ctx, &d, secrets)
	}
	return d, err
}

// secretsAfter returns the secrets that the deployment has after the patch. The secrets that
// it already has are opened only where another member of the deployment must fit them.
func (s *Store) secretsAfter(ctx context.Context, d Deployment, p Patch) ([]Secret, error) {
	switch {
	case p.Secrets != nil:
		return s.unredacted(ctx, d, *p.Secrets)
	case p.SecretReferences == nil && len(d.SourceConfig.ResourceSpec) == 0:
		return nil, nil
	default:
		return s.Secrets(ctx, d.Ref, d.Secrets)
	}
}

// unredacted returns the secrets that were sent, with present values for redacted values.
func (s *Store) unredacted(ctx context.Context, d Deployment, sent []Secret) ([]Secret, error) {
	secrets := slices.Clone(sent)
	if !slices.ContainsFunc(secrets, func(secret Secret) bool { return secret.Value == Redacted }) {
		return secrets, nil
	}
	present, err := s.Secrets(ctx, d.Ref, d.Secrets)
	if err != nil {
		return nil, err
	}
	values := valuesOf(present)
	for i, secret := range secrets {
		if value, ok := values[secret.Name]; ok && secret.Value == Redacted {
			secrets[i].Value = value
		}
	}
	return secrets, nil
}

func replace[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}

// setURL sets the custom_url of a request. An empty text removes the present custom_url. The
// URL that reads show while there is no custom_url does not set one when it is sent back.
func (d *Deployment) setURL(sent *string, shown string) {
	c := &d.SourceConfig
	switch {
	case sent == nil, c.CustomURL == nil && *sent == shown:
	case *sent == "":
		c.CustomURL = nil
	default:
		c.CustomURL = sent
	}
}

// immutables refuses another value for a member that cannot be changed; the same value passes.
func (p Patch) immutables(d Deployment) error {
	r := new(rules)
	fixed(r, "name", &d.Name, p.Name)
	fixed(r, "source", &d.Source, p.Source)
	if p.RevisionSource != nil && *p.RevisionSource != d.Source {
		r.Breaks("revision_source must be %s, as the deployment's source is, not %q.", d.Source, *p.RevisionSource)
	}
	fixed(r, "source_config.integration_id", d.SourceConfig.IntegrationID, p.SourceConfig.IntegrationID)
	fixed(r, "source_config.repo_url", d.SourceConfig.RepoURL, p.repoURL())
	fixed(r, "source_config.deployment_type", d.SourceConfig.DeploymentType, p.SourceConfig.DeploymentType)
	fixed(r, "source_config.listener_id", d.SourceConfig.ListenerID, p.SourceConfig.ListenerID)
	if p.SourceConfig.ListenerConfig != nil {
		var present *string
		if d.SourceConfig.ListenerConfig != nil {
			present = d.SourceConfig.ListenerConfig.K8sNamespace
		}
		fixed(r, "source_config.listener_config.k8s_namespace", present, p.SourceConfig.ListenerConfig.K8sNamespace)
	}
	return r.Err()
}

// repoURL is the repository's URL as it would be stored: without credentials.
func (p Patch) repoURL() *string {
	if p.SourceConfig.RepoURL == nil {
		return nil
	}
	clean, _ := cutCredentials(*p.SourceConfig.RepoURL)
	return &clean
}

func fixed[T comparable](r *rules, field string, present, value *T) {
	if value != nil && (present == nil || *present != *value) {
		r.Breaks("%s cannot be changed.", field)
	}
}

// planned returns the deployment as write would leave it.
func (s *Store) planned(d Deployment, makeRevision bool) Deployment {
	d.Updated = s.now()
	if makeRevision {
		d.Updated = id.After(d.Latest, s.now()) // so that revisions sort by creation
		d.Latest, d.ImageVersion = id.New(d.Updated), s.cfg.Version
		if d.Busy {
			d.Next = d.Latest
		} else {
			d.Slot, d.Busy = d.Latest, true
		}
	}
	return d
}

// firstStatus returns the first status of the deployment's newest revision.
func (d Deployment) firstStatus() revision.Status {
	if d.Slot == d.Latest {
		return revision.Creating
	}
	return revision.Queued
}

// Made returns the revision that was created by the change which returned the deployment, in
// its state at that time.
func (d Deployment) Made() revision.Revision {
	return revision.Made(d.Revision(d.Latest), d.revisionSpec(), d.firstStatus(), d.Updated)
}

// putRevision makes a new revision.
type putRevision func(ref revision.Ref, status revision.Status, now time.Time) revision.Change

// newRevision returns the function that makes a revision of the deployment's present values. Its
// commit is not known yet.
func (d *Deployment) newRevision() putRevision {
	d.CommitSHA = ""
	spec := d.revisionSpec()
	return func(ref revision.Ref, status revision.Status, now time.Time) revision.Change {
		return revision.Put(ref, spec, status, now)
	}
}

// write returns the writes that store a changed deployment; put makes its new revision, nil if
// there is no new revision. done is the entry's text in the audit log.
func (s *Store) write(ctx context.Context, d Deployment, done string, put putRevision) (Deployment, record.Outbox, error) {
	return s.writeWith(ctx, d, put, besides{
		event: event.DeploymentUpdated, entry: audit.New(ctx, audit.UpdateDeployment, d.Deployment, done),
	})
}

// besides holds the other parts of a change of a deployment: its event, its entry in the audit
// log, other writes, and attributes that are not part of the Spec.
type besides struct {
	event     event.Type
	message   string
	entry     audit.Entry
	writes    []table.Write
	revisions []revision.Change
	set       table.Attrs
	index     map[table.Index]table.Key
	// scale is the change of the workspace's counts; the replicas are those of the new revision.
	scale quota.Scale
}

func (s *Store) writeWith(ctx context.Context, d Deployment, put putRevision, more besides) (Deployment, record.Outbox, error) {
	starts := put != nil && !d.Busy
	d = s.planned(d, put != nil)
	now, set := d.Updated, table.Attrs{}
	maps.Copy(set, more.set)
	writes, err := s.refer(ctx, d, now)
	if err != nil {
		return d, record.Outbox{}, err
	}
	writes = append(append(writes, more.entry.Write(d.Workspace, now)), more.writes...)
	if put != nil {
		maps.Copy(set, table.Attrs{
			attrLatest: d.Latest, attrSlot: d.Slot, attrBusy: d.Busy, attrNext: d.Next, attrCommit: d.CommitSHA, attrImage: d.ImageVersion,
		})
		more.revisions = append(more.revisions, put(d.Revision(d.Latest), d.firstStatus(), now))
		replicas, err := d.mostReplicas()
		if err != nil {
			return d, record.Outbox{}, err
		}
		more.scale.Replicas, set[attrReplicas] = replicas-d.replicas, replicas
	}
	var counted record.Outbox
	if more.scale.Deployments != 0 || more.scale.Replicas != 0 {
		if err := s.cfg.Quotas.Rescale(ctx, s.table, now, &counted, d.Workspace, more.scale); err != nil {
			return d, counted, err
		}
	}
	for _, change := range more.revisions {
		writes = append(writes, change.Write)
	}
	if watch := d.watch(); watch != d.watched {
		writes = append(writes, watch.Write(now))
	}
	change := d.change(now, set)
	change.Body, change.Index = record.Encode(d.Spec), more.index
	if starts {
		change.Index = overdue(d.Deployment, now)
		maps.Copy(change.Index, more.index)
	}
	happened := d.newEvent(more.event)
	happened.Message = more.message
	events := append([]event.Event{happened}, d.revisionEvents(more.revisions...)...)
	o, err := s.outbox(ctx, d, events, append(writes, change)...)
	o.Join(counted)
	d.version++
	if starts {
		o.Then(s.starter(d, s.StartRollout))
	}
	return d, o, err
}
