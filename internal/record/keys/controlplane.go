package keys

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Workspace is the key of a workspace.
func Workspace(workspace string) table.Key {
	return table.Key{PK: "W#" + workspace, SK: "WORKSPACE"}
}

// WorkspaceOf reads the workspace back from a key that begins with it.
func WorkspaceOf(key table.Key) (string, error) {
	workspace, found := strings.CutPrefix(key.PK, "W#")
	if !found {
		return "", fmt.Errorf("key %v is not a key of a workspace", key)
	}
	workspace, _, _ = strings.Cut(workspace, "#")
	return workspace, nil
}

// APIKey is the key under which an API key is looked up. mac is the text form of its MAC,
// never the API key itself.
func APIKey(mac string) table.Key {
	return table.Key{PK: "KEY#" + mac, SK: "KEY"}
}

const dataKeys = "DATA-KEYS"

// DataKey is the key of a wrapped data key. number counts from 1.
func DataKey(number int) table.Key {
	return table.Key{PK: dataKeys, SK: fmt.Sprintf("KEY#%06d", number)}
}

// DataKeys asks for the wrapped data keys, oldest first.
func DataKeys() table.Query { return table.Query{PK: dataKeys} }

func deploymentPK(workspace, deployment string) string {
	return "W#" + workspace + "#D#" + deployment
}

// Deployment is the key of a deployment, in the partition that also holds its revisions.
func Deployment(workspace, deployment string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment), SK: "DEPLOYMENT"}
}

// DeploymentID reads a deployment's id back from its key.
func DeploymentID(key table.Key) string { return key.PK[strings.LastIndexByte(key.PK, '#')+1:] }

const revisionPrefix = "REV#"

// Revision is the key of a revision. Revision ids sort by creation.
func Revision(workspace, deployment, revision string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment), SK: revisionPrefix + revision}
}

// RevisionID reads a revision's id back from its key.
func RevisionID(key table.Key) string { return strings.TrimPrefix(key.SK, revisionPrefix) }

// RevisionParts are the ids in the key of a deployment or a revision. Revision is "" for a
// deployment.
type RevisionParts struct{ Workspace, Deployment, Revision string }

// ParseRevision reads the ids back from the key of a deployment or of one of its revisions.
func ParseRevision(key table.Key) (RevisionParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 4 || parts[0] != "W" || parts[2] != "D" {
		return RevisionParts{}, fmt.Errorf("key %v is neither a deployment's nor a revision's", key)
	}
	p := RevisionParts{Workspace: parts[1], Deployment: parts[3]}
	if strings.HasPrefix(key.SK, revisionPrefix) {
		p.Revision = RevisionID(key)
	}
	return p, nil
}

// Revisions asks for a deployment's revisions, oldest first.
func Revisions(workspace, deployment string) table.Query {
	return table.Query{PK: deploymentPK(workspace, deployment), Prefix: revisionPrefix}
}

// DeploymentName reserves a deployment's name in its workspace.
func DeploymentName(workspace, name string) table.Key {
	return table.Key{PK: "W#" + workspace + "#DEPLOYMENT-NAME#" + name, SK: "NAME"}
}

// TracingProject is the key of a tracing project, which has the name of its deployment.
func TracingProject(workspace, name string) table.Key {
	return table.Key{PK: "W#" + workspace + "#TRACING-PROJECT#" + name, SK: "PROJECT"}
}

// DeploymentListEntry places a deployment in its workspace's list, ordered by creation.
func DeploymentListEntry(workspace, deployment string) table.Key {
	return table.Key{PK: "W#" + workspace + "#DEPLOYMENTS", SK: deployment}
}

// DeploymentList asks for a workspace's deployments, oldest first.
func DeploymentList(workspace string) table.Query {
	return table.Query{Index: table.ByList, PK: "W#" + workspace + "#DEPLOYMENTS"}
}

// DeletedDeploymentEntry places a deployment among the deleted deployments of its workspace,
// ordered by creation, in place of DeploymentListEntry.
func DeletedDeploymentEntry(workspace, deployment string) table.Key {
	return table.Key{PK: "W#" + workspace + "#DELETED-DEPLOYMENTS", SK: deployment}
}

// DeletedDeployments asks for a workspace's deleted deployments, oldest first.
func DeletedDeployments(workspace string) table.Query {
	return table.Query{Index: table.ByList, PK: "W#" + workspace + "#DELETED-DEPLOYMENTS"}
}

// FreeDeploymentEntry places the name of a deployment of the free type among such names of its
// workspace.
func FreeDeploymentEntry(workspace, deployment string) table.Key {
	return table.Key{PK: "W#" + workspace + "#FREE-DEPLOYMENTS", SK: deployment}
}

// FreeDeployments asks for the names of a workspace's deployments of the free type.
func FreeDeployments(workspace string) table.Query {
	return table.Query{Index: table.ByList, PK: "W#" + workspace + "#FREE-DEPLOYMENTS"}
}

// DeploymentEntry places the name of a deployment where it is found by the deployment's id
// alone.
func DeploymentEntry(deployment string) table.Key {
	return table.Key{PK: "DEPLOYMENT#" + deployment, SK: "NAME"}
}

// DeploymentWithID asks for the name of the deployment with an id, when its workspace is not
// known.
func DeploymentWithID(deployment string) table.Query {
	return table.Query{Index: table.ByDue, PK: DeploymentEntry(deployment).PK}
}

// Build is the key of the information that a builder has about the build of a revision. The
// builder gets only the revision's id.
func Build(revision string) table.Key {
	return table.Key{PK: "BUILD#" + revision, SK: "BUILD"}
}

// BuildSlot is the key of a slot for a build of a workspace. Slots count from 1.
func BuildSlot(workspace string, number int) table.Key {
	return table.Key{PK: "W#" + workspace + "#BUILD-PLACES", SK: fmt.Sprintf("PLACE#%03d", number)}
}

// BuildSlots are the keys of a workspace's first slots for builds, in their order.
func BuildSlots(workspace string, count int) []table.Key {
	slots := make([]table.Key, count)
	for i := range slots {
		slots[i] = BuildSlot(workspace, i+1)
	}
	return slots
}

const releases = "RELEASES"

// ReleaseEntry places a revision among the revisions that a compute target keeps running.
func ReleaseEntry(revision string) table.Key {
	return table.Key{PK: releases, SK: revision}
}

// Releases asks for the revisions that a compute target keeps running.
func Releases() table.Query { return table.Query{Index: table.ByDue, PK: releases} }

const rollouts = "ROLLOUTS"

// RolloutEntry places a deployment with a revision in flight, or a teardown, among the entries
// that a timer looks at when they are due.
func RolloutEntry(deployment string, due time.Time) table.Key {
	return table.Key{PK: rollouts, SK: clock.Format(due) + "#" + deployment}
}

// Rollouts asks for the deployments whose rollout or teardown is overdue.
func Rollouts(dueBy time.Time) table.Query {
	return table.Query{Index: table.ByDue, PK: rollouts, To: clock.Format(dueBy) + "~"}
}
