package keys

import (
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

func eventList(workspace string) spread {
	return spread{table.ByList, "W#" + workspace + "#EVENTS#", 2, 4}
}

// EventEntry places an event of a deployment or a listener in its workspace's list.
func EventEntry(workspace, subject, event string) table.Key {
	return eventList(workspace).key(subject, event)
}

// WorkspaceEvents asks for a workspace's events, oldest first, one query for each shard. from
// is the beginning of an event id, at which the queries start. from may be "".
func WorkspaceEvents(workspace, from string) []table.Query {
	queries := eventList(workspace).queries()
	for shard := range queries {
		queries[shard].From = from
	}
	return queries
}
