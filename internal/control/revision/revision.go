// Package revision holds one build and rollout of a deployment's source: the request, which
// never changes, and the progress.
//
// Status, reason and message are three fields: the status is one of the interface's words (but for
// UNKNOWN, which is never stored), the reason a constant for machines, the message a sentence for
// people. Statuses change only along the table transitions (status.go), each by a write under
// the condition that the stored status allows it.
package revision

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Source is where a deployment's agent comes from.
type Source string

const (
	// GitHub is a git repository.
	GitHub Source = "github"
	// ExternalDocker is a container image of a registry that another party keeps.
	ExternalDocker Source = "external_docker"
	// InternalDocker is a container image that was pushed to the platform's own registry.
	InternalDocker Source = "internal_docker"
	// InternalSource is a tarball of sources that was uploaded to the platform.
	InternalSource Source = "internal_source"
)

// IsImage reports whether the source is an image, which needs no build.
func (s Source) IsImage() bool { return s == ExternalDocker || s == InternalDocker }

// Config is the interface's SourceRevisionConfig: the values from which a revision is made. A
// nil member is null.
type Config struct {
	RepoRef    *string `json:"repo_ref,omitempty"`
	ConfigPath *string `json:"framework_config_path,omitempty"`
	ImageURI   *string `json:"image_uri,omitempty"`
	// TarballPath names an upload of the same deployment.
	TarballPath *string `json:"source_tarball_path,omitempty"`
	// TrackedPackages are the framework's packages that the client says it has.
	TrackedPackages []string `json:"tracked_packages,omitempty"`
}

// Spec is everything that a revision was made from; it never changes.
type Spec struct {
	Source Source `json:"source"`
	Config Config `json:"source_revision_config"`
	// RepoURL contains no credentials; the credentials are in Credentials.
	RepoURL *string `json:"repo_url,omitempty"`
	// IntegrationID is the integration with which the repository is cloned. If it is nil, the
	// clone uses Credentials; if these are nil too, it uses no credentials.
	IntegrationID *string `json:"integration_id,omitempty"`
	// InstallCommand and BuildCommand are run in JavaScript repositories.
	InstallCommand *string `json:"install_command,omitempty"`
	BuildCommand   *string `json:"build_command,omitempty"`
	// ResourceSpec is the interface's ResourceSpec as it was sent.
	ResourceSpec json.RawMessage `json:"resource_spec,omitempty"`
	// ComputeTier is the size of each replica, nil when the deployment's type defines it.
	ComputeTier *string `json:"compute_tier,omitempty"`
	// Secrets and Credentials are sealed, bound to workspace and deployment; nil when there
	// are no such values.
	Secrets     []byte `json:"secrets,omitempty"`
	Credentials []byte `json:"credentials,omitempty"`
	// SecretReferences are variables whose values are kept in secrets of the workspace, or, if
	// a listener runs the release, in secrets of its cluster.
	SecretReferences []compute.SecretReference `json:"secret_references,omitempty"`
}

// Ref names a revision. Every read and write begins with the workspace.
type Ref struct {
	Workspace, Deployment, Revision string
}

// Key is the revision's storage key.
func (r Ref) Key() table.Key { return keys.Revision(r.Workspace, r.Deployment, r.Revision) }

// Revision is one build and rollout of a deployment.
type Revision struct {
	Ref
	Spec
	Created, Updated time.Time
	Status           Status
	// Reason and Message say why the revision has its status; "" when there is nothing to say.
	Reason, Message string
	// Waits is set if Reason and Message say what the revision in flight waits for, and not
	// why it is about to fail.
	Waits bool
	// Since is when the revision reached each of its statuses, and when its canary began.
	Since map[Status]time.Time
	// CommitSHA is the commit or the digest of the tarball that was built; "" before the build.
	CommitSHA string
	// Artifact is the result of the builder, or the image that a target resolved; zero before.
	Artifact build.Artifact
	// Build records the inputs of the build; nil before the build, and for a revision that
	// needs no build.
	Build *build.Record
	// Forgotten is set if the build of the commit is not kept: a revision that is made from
	// this revision is built again.
	Forgotten bool
	// Again is set if the revision was made from a revision that had been deployed.
	Again bool
	// Lost is how often a build of the revision was lost before it had a result.
	Lost int64

	// version is the version of the item from which the revision was read.
	version int64
}

const kind = "revision"

const (
	attrStatus   = "status"
	attrReason   = "reason"
	attrMessage  = "message"
	attrWaits    = "waits"
	attrCommit   = "commit"
	attrArtifact = "artifact"
	attrBuild    = "build"
	// attrForgotten is written before the build is removed, the artifact is removed after that.
	attrForgotten = "forgotten"
	attrAgain     = "again"
	attrLost      = "lost"
	// attrSince followed by a status has the time when the revision reached the status.
	attrSince = "since_"
)

// Reasons of statuses that are not failures.
const (
	// ReasonSuperseded: a newer revision took the place of a queued revision.
	ReasonSuperseded = "SUPERSEDED"
	// ReasonRolledBack: the revision was deployed, did not stay healthy, and the previous
	// revision took its place again.
	ReasonRolledBack = "ROLLED_BACK"
	// ReasonCancelled: a person asked for it.
	ReasonCancelled = "CANCELLED"
	// ReasonDeleted: the revision's deployment was deleted while the revision was in flight,
	// and was undeleted later.
	ReasonDeleted = "DEPLOYMENT_DELETED"
)

// ReasonSecretMissing is the reason of a failure: a secret of the workspace, or a key of the
// secret, does not exist any more.
const ReasonSecretMissing = "SECRET_NOT_FOUND"

// superseded is the message for ReasonSuperseded.
const superseded = "A newer revision took its place while it was queued."

// Change is a write of a revision. If the change is an event, Status is not "": it is
// the status from then on, with its reason and message.
type Change struct {
	Write           table.Write
	Revision        string
	Status          Status
	Reason, Message string
}

// Put creates a revision with its first status.
func Put(ref Ref, spec Spec, status Status, now time.Time) Change {
	return Change{Write: put(ref, spec, status, now), Revision: ref.Revision, Status: status}
}

// Made returns a revision as Put creates it.
func Made(ref Ref, spec Spec, status Status, now time.Time) Revision {
	return Revision{Ref: ref, Spec: spec, Created: now, Updated: now, Status: status, Since: map[Status]time.Time{status: now}}
}

func put(ref Ref, spec Spec, status Status, now time.Time) table.Put {
	own := table.Attrs{attrStatus: string(status), attrSince + string(status): clock.Format(now)}
	return record.New(ref.Key(), kind, now, own, record.Encode(spec))
}

// PutBuilt creates a revision from the values from which another revision was made. It
// includes the build, or the commit if the build is not kept or may not run.
func PutBuilt(ref Ref, from Revision, status Status, now time.Time) Change {
	put := put(ref, from.Spec, status, now)
	put.Item.Attrs[attrAgain] = true
	if from.CommitSHA != "" {
		put.Item.Attrs[attrCommit] = from.CommitSHA
	}
	if from.Build != nil {
		put.Item.Attrs[attrBuild] = string(record.Encode(from.Build))
	}
	if from.Forgotten || (from.CommitSHA != "" && !from.Checked()) {
		put.Item.Attrs[attrForgotten] = true
	} else if from.CommitSHA != "" || from.Artifact.Image != "" {
		put.Item.Attrs[attrArtifact] = string(record.Encode(from.Artifact))
	}
	return Change{Write: put, Revision: ref.Revision, Status: status}
}

// Commit is the commit that was built; "" before the build, and for a revision that is not
// from a repository.
func (r Revision) Commit() string { return r.Source.Commit(r.CommitSHA) }

// Commit returns a revision's version if the version is a commit, and otherwise "".
func (s Source) Commit(version string) string {
	if s != GitHub {
		return ""
	}
	return version
}

// IsBuilt reports whether there is something to release.
func (r Revision) IsBuilt() bool {
	return r.Source.IsImage() || (r.CommitSHA != "" && !r.Forgotten)
}

// Checked reports whether the release was built by the present rules for configuration files.
// For an image that was not built here, the image's own runtime checks the file.
func (r Revision) Checked() bool {
	return r.Source.IsImage() || (r.Build != nil && r.Build.Rules >= build.Rules)
}

// KeepsBuild reports whether the revision has a build, also a build that is being removed.
func (r Revision) KeepsBuild() bool {
	if r.Source == InternalDocker && !r.Forgotten {
		return true
	}
	return r.Source != ExternalDocker && (r.Artifact.Dir != "" || r.Artifact.Image != "")
}

// Image is the image that runs: the image that was made or resolved, or the image that a
// client named; "" if no image is known.
func (r Revision) Image() string {
	if r.Artifact.Image == "" && r.Source.IsImage() && r.Config.ImageURI != nil {
		return *r.Config.ImageURI
	}
	return r.Artifact.Image
}

// Forget returns the write of a deployed revision after which no revision is made from its
// build any more, so that the build can be removed.
func (r Revision) Forget() table.Update {
	return table.Update{Key: r.Key(), Set: table.Attrs{attrForgotten: true}, If: table.Equals(attrStatus, string(Deployed))}
}

// Forgot returns the write of a revision whose build was removed after Forget. Neither write
// changes anything that clients see.
func (r Revision) Forgot() table.Update {
	return table.Update{Key: r.Key(), Set: table.Attrs{attrArtifact: ""}, If: table.Equals(attrForgotten, true)}
}

// Decode reads a revision. A stored QUEUED means SKIPPED once the deployment's slot has gone
// to a newer revision: a revision that supersedes a hundred queued revisions needs no write for
// them.
func Decode(ref Ref, item *table.Item, slot string) (Revision, error) {
	read := record.Read(item, kind)
	r := Revision{
		Ref:       ref,
		Created:   read.Created(),
		Updated:   read.Updated(),
		Since:     since(&read),
		Status:    Status(item.Text(attrStatus)),
		Reason:    item.Text(attrReason),
		Message:   item.Text(attrMessage),
		Waits:     item.Bool(attrWaits),
		CommitSHA: item.Text(attrCommit),
		Forgotten: item.Bool(attrForgotten),
		Again:     item.Bool(attrAgain),
		Lost:      item.Int(attrLost),
		version:   item.Int(record.Version),
	}
	if r.Status == Queued && r.Revision < slot {
		r.Status, r.Reason, r.Message = Skipped, ReasonSuperseded, superseded
	}
	read.Decode(&r.Spec)
	read.JSON(attrArtifact, &r.Artifact)
	read.JSON(attrBuild, &r.Build)
	return r, read.Err()
}

// since returns when the revision reached each of its statuses.
func since(r *record.Reader) map[Status]time.Time {
	reached := map[Status]time.Time{}
	for name := range r.Attrs {
		if status, ok := strings.CutPrefix(name, attrSince); ok {
			reached[Status(status)] = r.Time(name)
		}
	}
	return reached
}

// Change moves the revision, as it was read, to its next status. A move that is not in the
// transition table is a bug.
func (r Revision) Change(now time.Time, next Status) Change {
	return r.statusChange(r.move(now, next), next)
}

// move is the write of Change.
func (r Revision) move(now time.Time, next Status) table.Update {
	if !r.Status.MayBecome(next) {
		panic(fmt.Sprintf("revision: %s may not become %s", r.Status, next))
	}
	set := table.Attrs{attrStatus: string(next), attrSince + string(next): clock.Format(now)}
	if r.Waits {
		set[attrReason], set[attrMessage], set[attrWaits] = "", "", false
	}
	return record.Change(r.Key(), now, set, table.Equals(attrStatus, string(r.Status)))
}

// statusChange returns a change that becomes an event.
func (r Revision) statusChange(write table.Update, status Status) Change {
	item := table.Item{Attrs: write.Set}
	return Change{Write: write, Revision: r.Revision, Status: status, Reason: item.Text(attrReason), Message: item.Text(attrMessage)}
}

// Note records why the revision is about to fail; its status stays. The message may hold output.
func (r Revision) Note(now time.Time, reason, message string) Change {
	return Change{Write: r.note(now, reason, message), Revision: r.Revision}
}

// Waiting records what the revision waits for; its status stays. If the revision was changed since
// it was read, the write fails: the change may be the reason why the revision is about to fail.
func (r Revision) Waiting(now time.Time, reason, message string) Change {
	write := r.note(now, reason, message)
	write.Set[attrWaits] = true
	write.If = table.Equals(record.Version, r.version)
	return Change{Write: write, Revision: r.Revision}
}

// Waited removes the reason and message that Waiting has recorded.
func (r Revision) Waited(now time.Time) Change {
	return Change{Write: r.note(now, "", ""), Revision: r.Revision}
}

// maxMessage is the largest size of a message in bytes. Repositories and agents write parts of
// messages, and an item with a very large message could not be stored.
const maxMessage = 16 << 10

// storable returns the beginning of a message, as UTF-8.
func storable(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " ..."
}

func (r Revision) note(now time.Time, reason, message string) table.Update {
	return record.Change(r.Key(), now, table.Attrs{attrReason: reason, attrMessage: storable(message), attrWaits: false}, table.Equals(attrStatus, string(r.Status)))
}

// Losing counts a build that was lost; the revision's status stays.
func (r Revision) Losing(now time.Time) Change {
	write := record.Change(r.Key(), now, table.Attrs{attrLost: r.Lost + 1}, table.Equals(attrStatus, string(r.Status)))
	return Change{Write: write, Revision: r.Revision}
}

// Built ends a build that succeeded.
func (r Revision) Built(now time.Time, result build.Result) Change {
	change := r.move(now, AwaitingDeploy)
	change.Set[attrCommit] = result.CommitSHA
	if r.Forgotten {
		change.Set[attrForgotten] = false
	}
	change.Set[attrArtifact] = string(record.Encode(result.Artifact))
	change.Set[attrBuild] = string(record.Encode(result.Record))
	return r.statusChange(change, AwaitingDeploy)
}

// Pinned keeps the digest of the image that the revision runs. When the revision is applied
// again, it runs the same image, even if the tag names another image by then.
func (r Revision) Pinned(now time.Time, image string) Change {
	artifact := r.Artifact
	artifact.Image = image
	write := record.Change(r.Key(), now, table.Attrs{attrArtifact: string(record.Encode(artifact))}, table.Equals(attrStatus, string(r.Status)))
	return Change{Write: write, Revision: r.Revision}
}

// Releasing hands a revision to the compute target, which keeps it running from then on.
func (r Revision) Releasing(now time.Time) Change {
	change := r.move(now, Deploying)
	change.Index = map[table.Index]table.Key{table.ByDue: keys.ReleaseEntry(r.Revision)}
	return r.statusChange(change, Deploying)
}

// notReleased removes a revision from the index of the revisions that must be kept running.
var notReleased = map[table.Index]table.Key{table.ByDue: {}}

// Failed ends a revision in the failure of its phase.
func (r Revision) Failed(now time.Time, reason, message string) Change {
	return r.ended(now, r.Status.Failure(), reason, message)
}

// Cancelled ends a revision by request.
func (r Revision) Cancelled(now time.Time) Change {
	return r.ended(now, Interrupted, ReasonCancelled, "It was cancelled by request.")
}

// CutOff ends a revision that was in flight when its deployment was deleted, which was undone.
func (r Revision) CutOff(now time.Time) Change {
	return r.ended(now, Interrupted, ReasonDeleted, "The deployment was deleted while it was in flight.")
}

// ended ends a revision that does not run from then on.
func (r Revision) ended(now time.Time, status Status, reason, message string) Change {
	change := r.move(now, status)
	change.Set[attrReason], change.Set[attrMessage] = reason, storable(message)
	change.Index = notReleased
	return r.statusChange(change, status)
}

// Retired returns the write of a revision whose release was replaced by another release; its
// status stays DEPLOYED.
func Retired(ref Ref, now time.Time) table.Update {
	change := record.Change(ref.Key(), now, nil, table.Cond{})
	change.Index = notReleased
	return change
}

// HadSlot reports whether the revision ever had the slot: whether it had a status other than
// the statuses of a revision that waits for the slot.
func (r Revision) HadSlot() bool {
	for status := range r.Since {
		if status != Queued && status != Skipped && status != Interrupted {
			return true
		}
	}
	return false
}

// Superseded ends a revision that a newer revision replaced while it was queued.
func (r Revision) Superseded(now time.Time) Change {
	change := r.move(now, Skipped)
	change.Set[attrReason], change.Set[attrMessage] = ReasonSuperseded, superseded
	return r.statusChange(change, Skipped)
}

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		parts, err := keys.ParseRevision(item.Key)
		return secret.Bound{Workspace: parts.Workspace, Resource: parts.Deployment}, err
	},
}
