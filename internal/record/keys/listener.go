package keys

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Listener is the key of a listener. A workspace's listeners share a partition, so that their list
// is one consistent read.
func Listener(workspace, listener string) table.Key {
	return table.Key{PK: Listeners(workspace).PK, SK: listener}
}

// ListenerID reads a listener's id back from its key.
func ListenerID(key table.Key) string { return key.SK }

// ListenerParts are the ids in the key of a listener.
type ListenerParts struct{ Workspace, Listener string }

// ParseListener reads the ids back from the key of a listener.
func ParseListener(key table.Key) (ListenerParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 3 || parts[0] != "W" || parts[2] != "LISTENERS" {
		return ListenerParts{}, fmt.Errorf("key %v is not that of a listener", key)
	}
	return ListenerParts{Workspace: parts[1], Listener: key.SK}, nil
}

// Listeners asks for a workspace's listeners, oldest first.
func Listeners(workspace string) table.Query { return table.Query{PK: "W#" + workspace + "#LISTENERS"} }

// ListenerName reserves the compute on which a listener runs releases, as its user named it,
// for one listener of the workspace.
func ListenerName(workspace, computeType, computeID string) table.Key {
	return table.Key{PK: "W#" + workspace + "#LISTENER-NAME#" + computeType + "#" + url.QueryEscape(computeID), SK: "NAME"}
}

func listenerPK(workspace, listener string) string { return "W#" + workspace + "#LISTENER#" + listener }

const usePrefix = "USE#"

// ListenerUse is the key of the note that a deployment runs in a namespace of a listener.
func ListenerUse(workspace, listener, namespace, deployment string) table.Key {
	return table.Key{PK: listenerPK(workspace, listener), SK: usePrefix + namespace + "#" + deployment}
}

// ListenerUses asks for the notes that say which deployments run at a listener.
func ListenerUses(workspace, listener string) table.Query {
	return table.Query{PK: listenerPK(workspace, listener), Prefix: usePrefix}
}

// ListenerNamespaceUses asks for the notes of one namespace.
func ListenerNamespaceUses(workspace, listener, namespace string) table.Query {
	return table.Query{PK: listenerPK(workspace, listener), Prefix: usePrefix + namespace + "#"}
}

// ListenerUseDeployment reads the deployment back from the key of a use.
func ListenerUseDeployment(key table.Key) string {
	return key.SK[strings.LastIndexByte(key.SK, '#')+1:]
}

// ListenerUseNamespace reads the namespace back from the key of a use.
func ListenerUseNamespace(key table.Key) string {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(key.SK, usePrefix), "#")
	return namespace
}

// ListenerWake is the key of the item that is written whenever a listener has something new to
// do.
func ListenerWake(workspace, listener string) table.Key {
	return table.Key{PK: listenerPK(workspace, listener), SK: "BELL"}
}

// ListenerEvent is the key of an event of a listener.
func ListenerEvent(workspace, listener, event string) table.Key {
	return table.Key{PK: listenerPK(workspace, listener) + "#EVENTS", SK: event}
}

// ListenerTask is the key of a listener's task for a revision.
func ListenerTask(workspace, listener, revision string) table.Key {
	return table.Key{PK: listenerPK(workspace, listener) + "#TASKS", SK: revision}
}

// ListenerTaskRevision reads the revision back from the key of a task.
func ListenerTaskRevision(key table.Key) string { return key.SK }

// ListenerTasks asks for the tasks of a listener, the oldest revision first.
func ListenerTasks(workspace, listener string) table.Query {
	return table.Query{PK: listenerPK(workspace, listener) + "#TASKS"}
}

const listenerReleases = "#LISTENER-RELEASES"

// ListenerRelease is the key of a revision that runs at a listener. It is found without
// knowing the listener.
func ListenerRelease(workspace, deployment, revision string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + listenerReleases, SK: revision}
}

// ParseListenerRelease reads the ids back from the key of a release at a listener.
func ParseListenerRelease(key table.Key) (RevisionParts, error) {
	deployment, found := strings.CutSuffix(key.PK, listenerReleases)
	p, err := ParseRevision(table.Key{PK: deployment, SK: revisionPrefix + key.SK})
	if !found || err != nil {
		return RevisionParts{}, fmt.Errorf("key %v is not that of a release at a listener", key)
	}
	return p, nil
}

// ListenerOutput is the key of the limit for the output of a release at a listener.
func ListenerOutput(workspace, deployment, revision string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + "#LISTENER-OUTPUT", SK: revision}
}

// ListenerReleaseEntry places a release among the releases of its listener.
func ListenerReleaseEntry(workspace, listener, revision string) table.Key {
	return table.Key{PK: listenerPK(workspace, listener) + "#RELEASES", SK: revision}
}

// ListenerReleases asks for the releases of a listener whose revision was created after a
// given revision, oldest first. after may be "".
func ListenerReleases(workspace, listener, after string) table.Query {
	query := table.Query{Index: table.ByList, PK: listenerPK(workspace, listener) + "#RELEASES"}
	if after != "" {
		query.From = after + "!" // directly behind the revision's own key
	}
	return query
}
