package event

import (
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/table"
)

// Type is what happened.
type Type string

// The events of deployments, and of the agents that serve. Those of revisions are OfStatus.
const (
	DeploymentCreated Type = "deployment.created"
	DeploymentUpdated Type = "deployment.updated"
	// DeploymentDeleted is the last event of a deployment.
	DeploymentDeleted Type = "deployment.deleted"
	// AgentCrashed: it was healthy and has ended. It is started again; further ends are not told until it has recovered.
	AgentCrashed Type = "agent.crashed"
	// AgentRecovered: it has not ended for a while.
	AgentRecovered Type = "agent.recovered"
	// WebhookTest is no event, but what a webhook is tested with.
	WebhookTest Type = "webhook.test"
)

const ofRevision = "revision."

// OfStatus is the type of the event that a revision came to a status: revision.build_failed of BUILD_FAILED.
func OfStatus(status string) Type { return Type(ofRevision + strings.ToLower(status)) }

// Event is one thing that happened.
type Event struct {
	Workspace string    `json:"-"`
	ID        string    `json:"-"`
	At        time.Time `json:"-"`
	// Previous is the event of the deployment before this one, "" when this is the first.
	Previous string `json:"previous,omitempty"`

	Type       Type   `json:"type"`
	Deployment string `json:"deployment_id"`
	Name       string `json:"deployment_name"`
	// Revision, Status, Reason and Message are those of a revision, or "".
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

// Chain gives the events of one deployment, which are about to be written together, their ids and times: behind the event that is its newest, "" when it
// has none.
func Chain(newest string, now time.Time, events []Event) []Event {
	events = slices.Clone(events)
	for i := range events {
		if after := id.Time(newest).Add(time.Microsecond); newest != "" && after.After(now) {
			now = after
		}
		events[i].ID, events[i].At, events[i].Previous = id.New(now), now, newest
		newest = events[i].ID
	}
	return events
}

// Write returns the write that adds the event to the logs.
func (e Event) Write() table.Write {
	return table.Put{If: table.Absent(), Item: table.Item{
		Key:   keys.DeploymentEvent(e.Workspace, e.Deployment, e.ID),
		Attrs: record.Attrs(kind, e.At, nil), Body: record.Encode(e), Expires: e.At.Add(retention),
		Index: map[table.Index]table.Key{table.ByList: keys.DeploymentEventEntry(e.Workspace, e.Deployment, e.ID)},
	}}
}

func decode(workspace string, item *table.Item) (Event, error) {
	e := Event{Workspace: workspace, ID: keys.DeploymentEventID(item.Key)}
	if err := record.Check(item, kind); err != nil {
		return Event{}, err
	}
	if err := record.Decode(item, &e); err != nil {
		return Event{}, err
	}
	var err error
	e.At, _, err = record.Times(item)
	return e, err
}

// Payload is the event as readers and webhooks see it.
type Payload struct {
	ID        string `json:"id"`
	Type      Type   `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      Data   `json:"data"`
}

// Data says what the event is about. What does not apply is null.
type Data struct {
	DeploymentID   string  `json:"deployment_id"`
	DeploymentName string  `json:"deployment_name"`
	RevisionID     *string `json:"revision_id"`
	Status         *string `json:"status"`
	StatusMessage  *string `json:"status_message"`
	StatusReason   *string `json:"status_reason"`
}

// Payload shows the event.
func (e Event) Payload() Payload {
	return Payload{e.ID, e.Type, clock.Format(e.At), Data{
		e.Deployment, e.Name, nullable(e.Revision), nullable(e.Status), nullable(e.Message), nullable(e.Reason),
	}}
}

func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
