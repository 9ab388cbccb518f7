package model

import (
	"cmp"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// ShowAssistant returns an assistant in the form that the interface has.
func ShowAssistant(a assistant.Assistant) Assistant {
	return Assistant{
		AssistantID: a.Assistant, GraphID: a.Graph, Name: a.Name, Description: a.Description, Version: a.Version,
		Config: state.OrEmpty(a.Config), Context: state.OrEmpty(a.Context), Metadata: state.OrEmpty(a.Metadata),
		CreatedAt: clock.Format(a.Created), UpdatedAt: clock.Format(a.Updated),
	}
}

// ShowRun returns a run in the form that the interface has.
func ShowRun(r run.Run) Run {
	return Run{
		RunID:             r.Run,
		ThreadID:          r.Thread,
		AssistantID:       r.AssistantID,
		Status:            RunStatus(r.Status),
		Metadata:          r.ShownMetadata(),
		MultitaskStrategy: MultitaskStrategy(r.Strategy),
		Kwargs:            r.Kwargs(),
		CreatedAt:         clock.Format(r.Created),
		UpdatedAt:         clock.Format(r.Updated),
		CancelReason:      optional.Of(string(r.CancelReason)),
	}
}

// ShowCron returns a cron in the form that the interface has.
func ShowCron(c cron.Cron) Cron {
	shown := Cron{
		CronID: c.Cron, AssistantID: c.AssistantID, Schedule: c.Schedule, Enabled: c.Enabled, Metadata: state.OrEmpty(c.Metadata),
		CreatedAt: clock.Format(c.Created), UpdatedAt: clock.Format(c.Updated), EndTime: clock.Nullable(c.End), NextRunDate: clock.Nullable(c.Next),
		Payload: record.Encode(map[string]any{
			"assistant_id": c.AssistantID, "input": c.Request.Input, "config": c.Config(), "context": state.OrEmpty(c.Request.Context),
			"webhook": optional.Of(c.Request.Webhook), "interrupt_before": state.OrNull(c.Request.InterruptBefore), "interrupt_after": state.OrNull(c.Request.InterruptAfter),
			"multitask_strategy": c.Request.Strategy, "stream_mode": c.Request.StreamModes, "stream_subgraphs": c.Request.StreamSubgraphs,
			"durability": cmp.Or(c.Request.Durability, string(DurabilityAsync)),
		}),
		ThreadID: optional.Of(c.Thread), Timezone: optional.Of(c.Timezone),
	}
	if c.Thread == "" {
		completed := OnRunCompletedDelete
		if c.Keep {
			completed = OnRunCompletedKeep
		}
		shown.OnRunCompleted = &completed
	}
	return shown
}

// ShowItem returns an item of a search in the form that the interface has.
func ShowItem(i store.Item) StoreItem {
	return StoreItem{
		Namespace: i.Namespace, Key: i.Key, Value: state.OrEmpty(i.Value), CreatedAt: clock.Format(i.Created), UpdatedAt: clock.Format(i.Updated), Score: i.Score,
	}
}
