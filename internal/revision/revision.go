package revision

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Source is where a deployment's agent comes from.
type Source string

const (
	// GitHub is a git repository.
	GitHub Source = "github"
	// ExternalDocker is a container image.
	ExternalDocker Source = "external_docker"
)

// Config is the interface's SourceRevisionConfig: what makes a revision. A nil member is null.
type Config struct {
	RepoRef    *string `json:"repo_ref"`
	ConfigPath *string `json:"framework_config_path"`
	ImageURI   *string `json:"image_uri"`
}

// Spec is everything that a revision was made from; it never changes.
type Spec struct {
	Source Source `json:"source"`
	Config Config `json:"source_revision_config"`
	// RepoURL holds no credentials: those are in Credentials.
	RepoURL *string `json:"repo_url,omitempty"`
	// ResourceSpec is the interface's ResourceSpec as it was sent.
	ResourceSpec json.RawMessage `json:"resource_spec,omitempty"`
	// Secrets and Credentials are sealed, bound to workspace and deployment; nil when there are none.
	Secrets     []byte `json:"secrets,omitempty"`
	Credentials []byte `json:"credentials,omitempty"`
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
	// Reason and Message say why the status is what it is; "" when there is nothing to say.
	Reason, Message string
	// CommitSHA is the commit that was built, "" before.
	CommitSHA string
	// Artifact is what the builder made; zero before.
	Artifact build.Artifact
	// Token is the sealed bearer token of the release, nil before it is deployed.
	Token []byte
}

const kind = "revision"

const (
	attrStatus   = "status"
	attrReason   = "reason"
	attrMessage  = "message"
	attrCommit   = "commit"
	attrArtifact = "artifact"
	attrToken    = "token"
)

// Put is the write that creates a revision with its first status.
func Put(ref Ref, spec Spec, status Status, now time.Time) table.Write {
	return table.Put{
		Item: table.Item{
			Key:   ref.Key(),
			Attrs: record.Attrs(kind, now, table.Attrs{attrStatus: string(status)}),
			Body:  record.Encode(spec),
		},
		If: table.Absent(),
	}
}

// Decode reads a revision. A stored QUEUED means SKIPPED once the deployment's slot has gone to a newer revision: overtaking a
// hundred queued revisions writes none of them.
func Decode(ref Ref, item *table.Item, slot string) (Revision, error) {
	if err := record.Check(item, kind); err != nil {
		return Revision{}, err
	}
	r := Revision{
		Ref:       ref,
		Status:    Status(item.Text(attrStatus)),
		Reason:    item.Text(attrReason),
		Message:   item.Text(attrMessage),
		CommitSHA: item.Text(attrCommit),
	}
	if r.Status == Queued && r.Revision < slot {
		r.Status = Skipped
	}
	var err error
	if r.Created, r.Updated, err = record.Times(item); err != nil {
		return Revision{}, err
	}
	if err := record.Decode(item, &r.Spec); err != nil {
		return Revision{}, err
	}
	if r.Token, err = base64.StdEncoding.DecodeString(item.Text(attrToken)); err != nil {
		return Revision{}, fmt.Errorf("decode token of revision %s: %w", r.Revision, err)
	}
	if text := item.Text(attrArtifact); text != "" {
		if err := json.Unmarshal([]byte(text), &r.Artifact); err != nil {
			return Revision{}, fmt.Errorf("decode artifact of revision %s: %w", r.Revision, err)
		}
	}
	return r, nil
}

// Change returns the write that moves the revision, as it was read, to its next status. A move that the transition table does not hold is a bug.
func (r Revision) Change(now time.Time, next Status) table.Update {
	if !r.Status.MayBecome(next) {
		panic(fmt.Sprintf("revision: %s may not become %s", r.Status, next))
	}
	return record.Change(r.Key(), now, table.Attrs{attrStatus: string(next)}, table.Equals(attrStatus, string(r.Status)))
}

// Note returns the write that records why the revision is about to fail; its status stays. The message may hold the output of a program.
func (r Revision) Note(now time.Time, reason, message string) table.Update {
	message = strings.ToValidUTF8(message, "\uFFFD")
	return record.Change(r.Key(), now, table.Attrs{attrReason: reason, attrMessage: message}, table.Equals(attrStatus, string(r.Status)))
}

// Built returns the write of a successful build.
func (r Revision) Built(now time.Time, result build.Result) table.Update {
	change := r.Change(now, AwaitingDeploy)
	change.Set[attrCommit] = result.CommitSHA
	change.Set[attrArtifact] = string(record.Encode(result.Artifact))
	return change
}

// Releasing returns the write of a revision that is handed to the compute target with its sealed token: from now on it is to be kept running.
func (r Revision) Releasing(now time.Time, token []byte) table.Update {
	change := r.Change(now, Deploying)
	change.Set[attrToken] = base64.StdEncoding.EncodeToString(token)
	change.Index = map[table.Index]table.Key{table.ByDue: keys.ReleaseEntry(r.Revision)}
	return change
}

// notReleased takes a revision from those that are to be kept running.
var notReleased = map[table.Index]table.Key{table.ByDue: {}}

// Failed returns the write of the revision's failure.
func (r Revision) Failed(now time.Time, reason, message string) table.Update {
	change := r.Change(now, r.Status.Failure())
	change.Set[attrReason], change.Set[attrMessage] = reason, message
	change.Index = notReleased
	return change
}

// Retired returns the write of a revision whose release gave way to another; its status stays DEPLOYED.
func Retired(ref Ref, now time.Time) table.Update {
	change := record.Change(ref.Key(), now, nil, table.Cond{})
	change.Index = notReleased
	return change
}
