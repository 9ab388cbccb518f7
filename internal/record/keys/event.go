package keys

import (
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// DeploymentEvent is the key of an event of a deployment. Event ids of a deployment sort in the
// order in which they were written.
func DeploymentEvent(workspace, deployment, event string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + "#EVENTS", SK: event}
}

// EventID reads an event's id back from its key.
func EventID(key table.Key) string { return key.SK }

// DeploymentEvents asks for a deployment's events after a given event, oldest first. after may
// be "".
func DeploymentEvents(workspace, deployment, after string) table.Query {
	query := table.Query{PK: deploymentPK(workspace, deployment) + "#EVENTS"}
	if after != "" {
		query.From = after + "!" // directly behind the event's own key
	}
	return query
}

// eventShards spreads the list of a workspace's events, so that a workspace is not bound to the
// write rate of one partition.
const eventShards = 4

// EventEntry places an event of a deployment or a listener in its workspace's list.
func EventEntry(workspace, subject, event string) table.Key {
	return table.Key{PK: eventListPK(workspace, shardOf(subject, eventShards)), SK: event}
}

func eventListPK(workspace string, shard int) string {
	return fmt.Sprintf("W#%s#EVENTS#%02d", workspace, shard)
}

// WorkspaceEvents asks for a workspace's events, oldest first, one query for each shard. from
// is the beginning of an event id, at which the queries start. from may be "".
func WorkspaceEvents(workspace, from string) []table.Query {
	queries := make([]table.Query, eventShards)
	for shard := range queries {
		queries[shard] = table.Query{Index: table.ByList, PK: eventListPK(workspace, shard), From: from}
	}
	return queries
}
