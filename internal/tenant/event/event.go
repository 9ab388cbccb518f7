package event

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Type is the type of an event.
type Type string

// The events of deployments, of the agents that serve, and of listeners. The types of
// revisions are made by OfStatus, except RevisionCanary.
const (
	DeploymentCreated Type = "deployment.created"
	DeploymentUpdated Type = "deployment.updated"
	// DeploymentDeleted is the last event of a deployment, unless it is DeploymentUndeleted.
	DeploymentDeleted   Type = "deployment.deleted"
	DeploymentUndeleted Type = "deployment.undeleted"
	// DeploymentRestarted: all agents of the deployment were restarted without a new revision.
	// DeploymentRestartFailed: the restart failed and the previous agents still serve.
	// DeploymentRestartWaiting: the restart goes on when there is room for it.
	DeploymentRestarted      Type = "deployment.restarted"
	DeploymentRestartFailed  Type = "deployment.restart_failed"
	DeploymentRestartWaiting Type = "deployment.restart_waiting"
	// RevisionCanary: a revision that is DEPLOYING begins to serve a share of the threads.
	RevisionCanary Type = "revision.canary"
	// AgentCrashed: a healthy agent ended. Slipway restarts it and reports no further crash until
	// the agent has recovered.
	AgentCrashed Type = "agent.crashed"
	// AgentRecovered: a crashed agent has run for a while without ending again.
	AgentRecovered Type = "agent.recovered"
	// ListenerOffline: a listener that had connected no longer calls. ListenerOnline follows.
	ListenerOffline Type = "listener.offline"
	// ListenerOnline: a listener that was reported offline calls again.
	ListenerOnline Type = "listener.online"
	// WebhookTest is not an event. It is the type of a webhook's test message.
	WebhookTest Type = "webhook.test"
)

// OfStatus returns the type of the event that a revision reached a status:
// revision.build_failed for BUILD_FAILED.
func OfStatus(status string) Type { return Type("revision." + strings.ToLower(status)) }

// Event is one event.
type Event struct {
	Workspace string    `json:"-"`
	ID        string    `json:"-"`
	At        time.Time `json:"-"`
	// Previous is the event of the deployment or listener before this event, or "" if this is
	// the first event.
	Previous string `json:"previous,omitempty"`

	Type Type `json:"type"`
	// Deployment is "" for events of a listener, and Listener, with its compute_id, for all others.
	Deployment string `json:"deployment_id,omitempty"`
	Name       string `json:"deployment_name,omitempty"`
	Listener   string `json:"listener_id,omitempty"`
	ComputeID  string `json:"compute_id,omitempty"`
	// Revision, Status, Reason and Message describe a revision, or are "".
	Revision string `json:"revision_id,omitempty"`
	Status   string `json:"status,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

const (
	kind = "event"
	// retention is how long events are kept.
	retention = 90 * 24 * time.Hour
)

// subject is the id of the deployment or listener of the event.
func (e Event) subject() string { return cmp.Or(e.Listener, e.Deployment) }

func (e Event) key() table.Key {
	if e.Listener != "" {
		return keys.ListenerEvent(e.Workspace, e.Listener, e.ID)
	}
	return keys.DeploymentEvent(e.Workspace, e.Deployment, e.ID)
}

// Chain sets the ids and times of events of one deployment or listener that will be written
// together. They follow the newest event, which is "" if there is no event yet.
func Chain(newest string, now time.Time, events []Event) []Event {
	events = slices.Clone(events)
	for i := range events {
		now = id.After(newest, now)
		events[i].ID, events[i].At, events[i].Previous = id.New(now), now, newest
		newest = events[i].ID
	}
	return events
}

// Write returns the write that adds the event to the logs.
func (e Event) Write() table.Write {
	put := record.New(e.key(), kind, e.At, nil, record.Encode(e))
	put.Item.Expires = e.At.Add(retention)
	put.Item.Index = map[table.Index]table.Key{table.ByList: keys.EventEntry(e.Workspace, e.subject(), e.ID)}
	return put
}

func decode(workspace string, item *table.Item) (Event, error) {
	e := Event{Workspace: workspace, ID: keys.EventID(item.Key)}
	r := record.Read(item, kind)
	r.Decode(&e)
	e.At = r.Created()
	return e, r.Err()
}

// Payload is the event as readers and webhooks see it.
type Payload struct {
	ID        string `json:"id"`
	Type      Type   `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      Data   `json:"data"`
}

// Data says what the event is about. Members that do not apply are null.
type Data struct {
	ComputeID      *string `json:"compute_id"`
	DeploymentID   *string `json:"deployment_id"`
	DeploymentName *string `json:"deployment_name"`
	ListenerID     *string `json:"listener_id"`
	RevisionID     *string `json:"revision_id"`
	Status         *string `json:"status"`
	StatusMessage  *string `json:"status_message"`
	StatusReason   *string `json:"status_reason"`
}

// Payload shows the event.
func (e Event) Payload() Payload {
	return Payload{e.ID, e.Type, clock.Format(e.At), Data{
		optional.Of(e.ComputeID), optional.Of(e.Deployment), optional.Of(e.Name), optional.Of(e.Listener),
		optional.Of(e.Revision), optional.Of(e.Status), optional.Of(e.Message), optional.Of(e.Reason),
	}}
}
