package deployment

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// Patch is a request to change a deployment. A nil member changes nothing.
type Patch struct {
	Name           *string
	Source         *revision.Source
	SourceConfig   SourceConfig
	RevisionConfig revision.Config
	// Secrets replaces all secrets when not nil; empty removes them.
	Secrets *[]Secret
	// AgentURL is what reads show as custom_url while none is set. Sent back, it changes nothing.
	AgentURL string
}

// Patch changes a deployment and makes a revision when the request has a value for the revision's configuration, the secrets or the resource
// specification. A broken rule, or another value for an immutable member, is a fault.Invalid and changes nothing.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (Deployment, error) {
	for range contention {
		d, err := s.Get(ctx, ref)
		if err != nil {
			return Deployment{}, err
		}
		if d.Status == AwaitingDelete {
			return Deployment{}, fault.New(fault.Conflict, "Deployment ID %s is being deleted.", ref.Deployment)
		}
		next, err := s.apply(ctx, d, patch)
		if err != nil {
			return Deployment{}, err
		}
		if !patch.makesRevision() && reflect.DeepEqual(next.Spec, d.Spec) {
			return d, nil
		}
		next, err = s.write(ctx, next, patch.makesRevision())
		if errors.Is(err, errChanged) {
			continue
		}
		return next, err
	}
	return Deployment{}, fault.New(fault.Unavailable, "Deployment ID %s is changed too often to take another change.", ref.Deployment)
}

// errChanged says that the deployment was changed since it was read.
var errChanged = errors.New("the deployment was changed meanwhile")

func (p Patch) makesRevision() bool {
	c := p.RevisionConfig
	return c.RepoRef != nil || c.ConfigPath != nil || c.ImageURI != nil || p.Secrets != nil || p.SourceConfig.ResourceSpec != nil
}

// apply returns the deployment as it would be after the patch, checked as a whole.
func (s *Store) apply(ctx context.Context, d Deployment, p Patch) (Deployment, error) {
	if err := p.immutables(d); err != nil {
		return Deployment{}, err
	}
	c := &d.SourceConfig
	replace(&c.BuildOnPush, p.SourceConfig.BuildOnPush)
	if sent := p.SourceConfig.CustomURL; c.CustomURL != nil || sent == nil || *sent != p.AgentURL {
		replace(&c.CustomURL, sent)
	}
	replace(&c.InstallCommand, p.SourceConfig.InstallCommand)
	replace(&c.BuildCommand, p.SourceConfig.BuildCommand)
	if p.SourceConfig.ResourceSpec != nil {
		c.ResourceSpec = p.SourceConfig.ResourceSpec
	}
	replace(&d.RevisionConfig.RepoRef, p.RevisionConfig.RepoRef)
	replace(&d.RevisionConfig.ConfigPath, p.RevisionConfig.ConfigPath)
	replace(&d.RevisionConfig.ImageURI, p.RevisionConfig.ImageURI)
	var secrets []Secret
	if p.Secrets != nil {
		secrets = *p.Secrets
	}
	if err := validate(d.Spec, secrets); err != nil {
		return Deployment{}, err
	}
	if p.Secrets == nil {
		return d, nil
	}
	return d, s.sealSecrets(ctx, &d, secrets)
}

func replace[T any](field **T, value *T) {
	if value != nil {
		*field = value
	}
}

// immutables refuses another value for what cannot be changed; the same value passes.
func (p Patch) immutables(d Deployment) error {
	r := new(rules)
	fixed(r, "name", &d.Name, p.Name)
	fixed(r, "source", &d.Source, p.Source)
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
	return r.err()
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
		r.breaks("%s cannot be changed.", field)
	}
}

// write stores a changed deployment, with a new revision if asked for, which takes the slot or is queued behind the revision in flight.
func (s *Store) write(ctx context.Context, d Deployment, makeRevision bool) (Deployment, error) {
	now := s.now()
	set := table.Attrs{}
	var writes []table.Write
	starts := false
	if makeRevision {
		now = s.after(d.Latest)
		d.Latest = id.New(now)
		status := revision.Queued
		if starts = !d.Busy; starts {
			d.Slot, d.Busy, status = d.Latest, true, revision.Creating
			set[attrSlot], set[attrBusy] = d.Slot, true
		}
		d.CommitSHA = ""
		set[attrLatest], set[attrCommit] = d.Latest, ""
		writes = append(writes, revision.Put(d.Revision(d.Latest), d.revisionSpec(), status, now))
	}
	change := d.change(now, set)
	change.Body = record.Encode(d.Spec)
	if starts {
		change.Index = overdue(d.Deployment, now)
	}
	err := s.table.Transact(ctx, append(writes, change)...)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return Deployment{}, errChanged
	}
	if err != nil {
		return Deployment{}, fmt.Errorf("write deployment: %w", err)
	}
	d.Updated = now
	d.version++
	if starts {
		s.begin(ctx, d, s.StartRollout)
	}
	return d, nil
}

// Delete takes a deployment out of its workspace's list, frees its name and starts the teardown. Deleting it again does nothing more.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	for range contention {
		d, err := s.Get(ctx, ref)
		if err != nil {
			return err
		}
		if d.Status != AwaitingDelete {
			err = s.markDeleted(ctx, d)
			if errors.Is(err, errChanged) {
				continue
			}
			if err != nil {
				return err
			}
		}
		s.begin(ctx, d, func(ctx context.Context, d Deployment) error { return s.StartTeardown(ctx, d.Ref) })
		return nil
	}
	return fault.New(fault.Unavailable, "Deployment ID %s is changed too often to be deleted.", ref.Deployment)
}

func (s *Store) markDeleted(ctx context.Context, d Deployment) error {
	now := s.now()
	change := d.change(now, table.Attrs{attrStatus: string(AwaitingDelete)})
	change.Index = overdue(d.Deployment, now)
	change.Index[table.ByList] = table.Key{}
	err := s.table.Transact(ctx, change,
		table.Delete{Key: keys.DeploymentName(d.Workspace, d.Name)},
		table.Delete{Key: keys.TracingProject(d.Workspace, d.Name)},
	)
	if _, ok := errors.AsType[*table.ConditionFailed](err); ok {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("delete deployment: %w", err)
	}
	return nil
}
