package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// CreateCron makes a cron. Each of its runs has a thread of its own.
func (s server) CreateCron(ctx context.Context, request CreateCronRequestObject) (CreateCronResponseObject, error) {
	created, err := s.createCron(ctx, "", request.Body)
	return CreateCron200JSONResponse(created), err
}

// CreateThreadCron makes a cron whose runs are on a thread.
func (s server) CreateThreadCron(ctx context.Context, request CreateThreadCronRequestObject) (CreateThreadCronResponseObject, error) {
	t, err := s.Threads.Get(ctx, threadRef(ctx, request.ThreadID))
	if err == nil {
		err = t.Usable()
	}
	if err != nil {
		return nil, err
	}
	// The cron's runs are on the thread.
	filter, _, err := s.also(ctx, access.Of("threads:create_run"), map[string]any{"thread_id": t.Thread, "assistant_id": request.Body.AssistantID})
	if err := matching404(err, filter, t.Metadata, thread.NotFound(t.Ref)); err != nil {
		return nil, err
	}
	created, err := s.createCron(ctx, t.Thread, request.Body)
	return CreateThreadCron200JSONResponse(created), err
}

func (s server) createCron(ctx context.Context, threadID string, body *model.CronCreate) (model.Cron, error) {
	d := served(ctx)
	if d.Active == "" {
		return model.Cron{}, fault.New(fault.Unavailable, "Deployment ID %s has no deployed revision yet.", d.Deployment)
	}
	_, named, err := s.named(ctx, body.AssistantID)
	if err == nil {
		err = s.mayRun(ctx, named)
	}
	if err != nil {
		return model.Cron{}, err
	}
	content := cron.Content{
		Graph: named.Graph, AssistantID: named.Assistant, Thread: threadID, Schedule: body.Schedule, Enabled: true,
		Request: run.Request{Strategy: run.Enqueue, StreamModes: streamModes(body.StreamMode)},
	}
	err = cronChange{
		Config: body.Config, Context: body.Context, Durability: durability(body.Durability, body.CheckpointDuring), Enabled: body.Enabled, EndTime: body.EndTime, Input: body.Input,
		InterruptAfter: body.InterruptAfter, InterruptBefore: body.InterruptBefore, Metadata: body.Metadata, MultitaskStrategy: body.MultitaskStrategy,
		OnRunCompleted: body.OnRunCompleted, StreamMode: body.StreamMode, StreamSubgraphs: body.StreamSubgraphs, Timezone: body.Timezone, Webhook: body.Webhook,
	}.apply(ctx, s, &content)
	if err != nil {
		return model.Cron{}, err
	}
	// The cron's runs belong to the user that made the cron. The headers belong to this
	// request only.
	content.Request.Caller = &graph.Caller{User: callerOf(ctx).User}
	created, err := s.Crons.Create(ctx, d.Workspace, d.Deployment, content)
	return model.ShowCron(created), err
}

// cronChange is a change of a cron that a request asks for. A member that is absent or null
// changes nothing, except that a null end removes the end. Metadata is merged on the first level.
type cronChange model.CronPatch

func (p cronChange) apply(ctx context.Context, s server, c *cron.Content) error {
	input, err := runInput(p.Input)
	if err != nil {
		return err
	}
	c.Schedule = optional.Or(p.Schedule, c.Schedule)
	c.Timezone = optional.Or(p.Timezone, c.Timezone)
	if len(p.EndTime) > 0 {
		if c.End, err = endTime(p.EndTime, c.Timezone); err != nil {
			return err
		}
	}
	c.Enabled = optional.Or(p.Enabled, c.Enabled)
	if p.OnRunCompleted != nil {
		c.Keep = *p.OnRunCompleted == model.OnRunCompletedKeep
	}
	request := &c.Request
	if input.JSON() != nil {
		request.Input = input
	}
	for from, to := range map[*json.RawMessage]*json.RawMessage{
		&p.Config: &request.Config, &p.Context: &request.Context,
		&p.InterruptBefore: &request.InterruptBefore, &p.InterruptAfter: &request.InterruptAfter,
	} {
		if given := state.Present(*from); given != nil {
			*to = given
		}
	}
	if given := state.Present(p.Metadata); given != nil {
		if c.Metadata, err = record.Merge(c.Metadata, given); err != nil {
			return err
		}
	}
	request.Strategy = run.Strategy(optional.Or(p.MultitaskStrategy, model.MultitaskStrategy(request.Strategy)))
	if len(p.StreamMode) > 0 {
		request.StreamModes = streamModes(p.StreamMode)
	}
	request.StreamSubgraphs = optional.Or(p.StreamSubgraphs, request.StreamSubgraphs)
	request.Durability = string(optional.Or(p.Durability, model.Durability(request.Durability)))
	if optional.Text(p.Webhook) == "" {
		return nil
	}
	request.Webhook, err = s.webhookOf(ctx, p.Webhook)
	return err
}

// endTime reads the time when a cron ends; zero if the cron never ends.
func endTime(raw json.RawMessage, timezone string) (time.Time, error) {
	var end *string
	if err := json.Unmarshal(raw, &end); err != nil {
		return time.Time{}, fmt.Errorf("read end_time: %w", err)
	}
	if end == nil {
		return time.Time{}, nil
	}
	return cron.ParseEnd(*end, timezone)
}

// GetCron reads a cron.
func (s server) GetCron(ctx context.Context, request GetCronRequestObject) (GetCronResponseObject, error) {
	stored, err := s.Crons.Get(ctx, cronRef(ctx, request.CronID))
	return GetCron200JSONResponse(model.ShowCron(stored)), err
}

// PatchCron changes a cron.
func (s server) PatchCron(ctx context.Context, request PatchCronRequestObject) (PatchCronResponseObject, error) {
	change := cronChange(*request.Body)
	if err := change.apply(ctx, s, &cron.Content{}); err != nil {
		return nil, err
	}
	changed, err := s.Crons.Update(ctx, cronRef(ctx, request.CronID), func(c *cron.Content) {
		_ = change.apply(ctx, s, c) // it was checked
	})
	return PatchCron200JSONResponse(model.ShowCron(changed)), err
}

// DeleteCron removes a cron.
func (s server) DeleteCron(ctx context.Context, request DeleteCronRequestObject) (DeleteCronResponseObject, error) {
	return DeleteCron204Response{}, s.Crons.Delete(ctx, cronRef(ctx, request.CronID))
}

// SearchCrons lists the crons that match.
func (s server) SearchCrons(ctx context.Context, request SearchCronsRequestObject) (SearchCronsResponseObject, error) {
	body := request.Body
	search, err := s.cronSearch(ctx, model.CronCount{AssistantID: body.AssistantID, Metadata: body.Metadata, ThreadID: body.ThreadID})
	if err != nil {
		return nil, err
	}
	search.Enabled, search.SortBy, search.Ascending = body.Enabled, string(optional.Or(body.SortBy, "")), isAscending(body.SortOrder)
	search.Window = record.Window{Limit: optional.Or(body.Limit, 10), Offset: optional.Or(body.Offset, 0)}
	d := served(ctx)
	crons, total, err := s.Crons.Search(ctx, d.Workspace, d.Deployment, search)
	return page[model.Cron]{items: web.ShowAll(crons, model.ShowCron), selected: body.Select, offset: search.Offset, more: total > search.Offset+len(crons), total: total}, err
}

// CountCrons counts the crons that match.
func (s server) CountCrons(ctx context.Context, request CountCronsRequestObject) (CountCronsResponseObject, error) {
	search, err := s.cronSearch(ctx, *request.Body)
	if err != nil {
		return nil, err
	}
	d := served(ctx)
	_, total, err := s.Crons.Search(ctx, d.Workspace, d.Deployment, search)
	return CountCrons200JSONResponse(total), err
}

// cronSearch returns the search for crons that match. A cron shows what its runs ask its thread, so
// the request's user must also be allowed to see the thread.
func (s server) cronSearch(ctx context.Context, criteria model.CronCount) (cron.Search, error) {
	filter, err := match.Parse(state.Present(criteria.Metadata))
	if err != nil {
		return cron.Search{}, err
	}
	search := cron.Search{Metadata: filter.And(ownDecisionOf(ctx).filter), Thread: strings.ToLower(optional.Text(criteria.ThreadID))}
	if name := optional.Text(criteria.AssistantID); name != "" {
		if search.AssistantID = nameOf(name); !isID(name) {
			search.AssistantID = assistant.DefaultID(name)
		}
	}
	to := access.Of("threads:search")
	value := to.NoMembers()
	if search.Thread != "" {
		to, value = access.Of("threads:read"), map[string]any{"thread_id": search.Thread}
	}
	search.Threads, _, err = s.also(ctx, to, value)
	return search, err
}

func cronRef(ctx context.Context, cronID string) cron.Ref {
	d := served(ctx)
	return cron.Ref{Workspace: d.Workspace, Deployment: d.Deployment, Cron: strings.ToLower(cronID)}
}
