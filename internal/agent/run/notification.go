package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// Observer is called at the beginning and at the end of each run, after the run was written. If the
// process dies in between, the observer is not called. It is not called for runs that Refuse
// creates.
type Observer interface {
	// Started gets a run at its first attempt, and how long the run waited for this attempt since
	// the run was created, or since it was due.
	Started(ctx context.Context, run Run, waited time.Duration)
	// Ended gets a run that has its last status.
	Ended(ctx context.Context, run Run)
}

// maxNotification is the largest size in bytes of a message about a run to a webhook: the message
// is stored in base64 until it has arrived.
const maxNotification = 8 << 20

// notifyEnd returns the writes that send the end of a run to the run's webhook, if the run has a
// webhook. The caller adds them to the transaction of Finish, for an interrupted run to the
// transaction of Seal, and for a run that was rolled back to the transaction that deletes it. If
// the message is larger than maxNotification, values and input are left out, and then all arguments
// and the metadata: otherwise the run could not end.
//
// The outbox calls the observer after the commit.
func (s *Store) notifyEnd(run Run, values state.Values, now time.Time) (o record.Outbox) {
	o.Join(s.notifyObserver(run))
	if run.Webhook == "" || s.Webhooks == nil {
		return o
	}
	body := map[string]any{
		"run_id": run.Run, "thread_id": run.Thread, "assistant_id": run.AssistantID, "status": run.Status, "metadata": run.ShownMetadata(), "kwargs": run.Kwargs(),
		"multitask_strategy": run.Strategy, "created_at": clock.Format(run.Created), "updated_at": clock.Format(run.Updated),
		"run_started_at": nil, "run_ended_at": clock.Format(run.Updated), "webhook_sent_at": clock.Format(now), "values": values.JSON(), "error": run.Failure,
		"cancel_reason": nil,
	}
	if run.CancelReason != "" {
		body["cancel_reason"] = run.CancelReason
	}
	if run.Status == Removed { // the state no longer has anything of the run
		body["status"], body["values"] = "rollback", nil
	}
	if !run.Started.IsZero() {
		body["run_started_at"] = clock.Format(run.Started)
	}
	sent, _ := s.Webhooks.Send(webhook.Message{
		Workspace: run.Workspace, Deployment: run.Deployment, Log: run.Run, URL: run.Webhook, Type: fmt.Sprintf("run.%s", body["status"]), Body: short(body, run),
	})
	return sent
}

// notifyObserver calls the observer, if there is one, when the run's end is committed. A run that
// was rolled back before a worker claimed it has no other notification.
func (s *Store) notifyObserver(run Run) (o record.Outbox) {
	if s.Observer != nil {
		o.Then(func(ctx context.Context) { s.Observer.Ended(ctx, run) })
	}
	return o
}

// notifyQuestions calls Config.QuestionsChanged after the commit of a change that leaves a thread
// with questions, or that leaves a thread without the questions that it had.
func (s *Store) notifyQuestions(t thread.Thread, questions json.RawMessage) (o record.Outbox) {
	if s.QuestionsChanged != nil && (questions != nil || !record.Empty(t.Interrupts)) {
		o.Then(func(context.Context) { s.QuestionsChanged(t.Workspace, t.Deployment) })
	}
	return o
}

// short encodes the message about a run without the parts that make it too long.
func short(body map[string]any, run Run) []byte {
	encoded := record.Encode(body)
	if len(encoded) > maxNotification {
		run.Input = Input{}
		body["values"], body["kwargs"] = nil, run.Kwargs()
		encoded = record.Encode(body)
	}
	if len(encoded) > maxNotification {
		body["kwargs"], body["metadata"] = nil, json.RawMessage("{}")
		encoded = record.Encode(body)
	}
	return encoded
}
