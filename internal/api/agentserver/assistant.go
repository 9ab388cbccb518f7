package agentserver

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// owner returns the deployment as the owner of its assistants.
func (s server) owner(ctx context.Context) (assistant.Owner, error) {
	d := served(ctx)
	graphs, err := s.graphs(ctx)
	return assistant.Owner{Workspace: d.Workspace, Deployment: d.Deployment, Graphs: graphs, Descriptions: d.Descriptions, Created: d.Created}, err
}

// named returns the assistant that a request names, by its id or by its graph.
func (s server) named(ctx context.Context, name string) (assistant.Owner, assistant.Assistant, error) {
	owner, err := s.owner(ctx)
	if err != nil {
		return owner, assistant.Assistant{}, err
	}
	stored, err := s.Assistants.Named(ctx, owner, nameOf(name))
	return owner, stored, err
}

// nameOf returns an id in the form in which ids are stored; it does not change a graph's name.
func nameOf(assistantID string) string {
	if isID(assistantID) {
		return strings.ToLower(assistantID)
	}
	return assistantID
}

// CreateAssistant makes an assistant.
func (s server) CreateAssistant(ctx context.Context, request CreateAssistantRequestObject) (CreateAssistantResponseObject, error) {
	owner, err := s.owner(ctx)
	if err != nil {
		return nil, err
	}
	body := request.Body
	created, err := s.Assistants.Create(ctx, owner, strings.ToLower(optional.Text(body.AssistantID)), assistant.Content{
		Graph: body.GraphID, Name: cmp.Or(optional.Text(body.Name), "Untitled"), Description: body.Description, Config: state.Present(body.Config), Context: state.Present(body.Context), Metadata: state.Present(body.Metadata),
	})
	if fault.Is(err, fault.Conflict) && body.AssistantID != nil && body.IfExists != nil && *body.IfExists == model.IfExistsDoNothing {
		created, err = s.standing(ctx, owner, *body.AssistantID, err)
	}
	return CreateAssistant200JSONResponse(model.ShowAssistant(created)), err
}

// standing returns the assistant that already has an id, or the error conflict if that
// assistant is not an assistant of the user.
func (s server) standing(ctx context.Context, owner assistant.Owner, assistantID string, conflict error) (assistant.Assistant, error) {
	stored, err := s.Assistants.Get(ctx, owner, strings.ToLower(assistantID))
	if err != nil {
		return stored, conflict
	}
	return stored, matching404(nil, ownDecisionOf(ctx).filter, stored.Metadata, conflict)
}

// GetAssistant reads an assistant.
func (s server) GetAssistant(ctx context.Context, request GetAssistantRequestObject) (GetAssistantResponseObject, error) {
	_, stored, err := s.named(ctx, request.AssistantID)
	return GetAssistant200JSONResponse(model.ShowAssistant(stored)), err
}

// PatchAssistant makes a new version of an assistant.
func (s server) PatchAssistant(ctx context.Context, request PatchAssistantRequestObject) (PatchAssistantResponseObject, error) {
	owner, stored, err := s.named(ctx, request.AssistantID)
	if err != nil {
		return nil, err
	}
	body := request.Body
	changed, err := s.Assistants.Update(ctx, owner, stored.Assistant, assistant.Patch{
		Graph: body.GraphID, Name: body.Name, Description: body.Description,
		Config: state.Present(body.Config), Context: state.Present(body.Context), Metadata: state.Present(body.Metadata),
	})
	return PatchAssistant200JSONResponse(model.ShowAssistant(changed)), err
}

// DeleteAssistant removes an assistant, and, if the request asks for it, the threads whose
// metadata names the assistant.
func (s server) DeleteAssistant(ctx context.Context, request DeleteAssistantRequestObject) (DeleteAssistantResponseObject, error) {
	owner, stored, err := s.named(ctx, request.AssistantID)
	if err != nil {
		return nil, err
	}
	if isTrue(request.Params.DeleteThreads) {
		// The assistant is deleted last: a client that repeats an unfinished request still
		// finds it.
		if err := s.deleteThreadsOf(ctx, stored.Assistant); err != nil {
			return nil, err
		}
	}
	return DeleteAssistant204Response{}, s.Assistants.Delete(ctx, owner, stored.Assistant)
}

// threadsAtOnce is how many threads of an assistant are read in one search before they are
// deleted.
const threadsAtOnce = 100

func (s server) deleteThreadsOf(ctx context.Context, assistantID string) error {
	filter, err := match.Parse(object(map[string]any{"assistant_id": assistantID}))
	if err != nil {
		return err
	}
	own, _, err := s.also(ctx, access.Of("threads:delete"), map[string]any{"assistant_id": assistantID})
	if err != nil {
		return err
	}
	filter = filter.And(own)
	d := served(ctx)
	search := thread.Search{Filter: thread.Filter{Metadata: filter}, SortBy: thread.SortCreated}
	search.Limit = threadsAtOnce
	for {
		page, err := s.Threads.Search(ctx, d.Workspace, d.Deployment, search, nil)
		if err != nil {
			return err
		}
		for _, t := range page.Threads {
			if err := s.Threads.Delete(ctx, t.Ref); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// SearchAssistants lists the assistants that match.
func (s server) SearchAssistants(ctx context.Context, request SearchAssistantsRequestObject) (SearchAssistantsResponseObject, error) {
	body := request.Body
	owner, search, err := s.assistantSearch(ctx, model.AssistantCount{GraphID: body.GraphID, Metadata: body.Metadata, Name: body.Name})
	if err != nil {
		return nil, err
	}
	search.SortBy, search.Ascending = string(optional.Or(body.SortBy, "")), isAscending(body.SortOrder)
	search.Limit, search.Offset = optional.Or(body.Limit, 10), optional.Or(body.Offset, 0)
	assistants, total, err := s.Assistants.Search(ctx, owner, search)
	return page[model.Assistant]{items: web.ShowAll(assistants, model.ShowAssistant), selected: body.Select, offset: search.Offset, more: total > search.Offset+len(assistants), total: total}, err
}

// CountAssistants counts the assistants that match.
func (s server) CountAssistants(ctx context.Context, request CountAssistantsRequestObject) (CountAssistantsResponseObject, error) {
	owner, search, err := s.assistantSearch(ctx, *request.Body)
	if err != nil {
		return nil, err
	}
	_, total, err := s.Assistants.Search(ctx, owner, search)
	return CountAssistants200JSONResponse(total), err
}

func (s server) assistantSearch(ctx context.Context, body model.AssistantCount) (assistant.Owner, assistant.Search, error) {
	owner, err := s.owner(ctx)
	filter, problem := match.Parse(state.Present(body.Metadata))
	return owner, assistant.Search{Graph: optional.Text(body.GraphID), Name: optional.Text(body.Name), Metadata: filter.And(ownDecisionOf(ctx).filter)}, errors.Join(err, problem)
}

// ListAssistantVersions lists the versions of an assistant, newest first.
func (s server) ListAssistantVersions(ctx context.Context, request ListAssistantVersionsRequestObject) (ListAssistantVersionsResponseObject, error) {
	owner, stored, err := s.named(ctx, request.AssistantID)
	if err != nil {
		return nil, err
	}
	filter, err := match.Parse(state.Present(request.Body.Metadata))
	if err != nil {
		return nil, err
	}
	versions, err := s.Assistants.Versions(ctx, owner, stored.Assistant, assistant.Search{
		Metadata: filter, Limit: optional.Or(request.Body.Limit, 10), Offset: optional.Or(request.Body.Offset, 0),
	})
	return ListAssistantVersions200JSONResponse(web.ShowAll(versions, model.ShowAssistant)), err
}

// SetLatestAssistantVersion makes a version the version that runs use.
func (s server) SetLatestAssistantVersion(
	ctx context.Context, request SetLatestAssistantVersionRequestObject,
) (SetLatestAssistantVersionResponseObject, error) {
	owner, stored, err := s.named(ctx, request.AssistantID)
	if err != nil {
		return nil, err
	}
	changed, err := s.Assistants.SetLatest(ctx, owner, stored.Assistant, request.Body.Version)
	return SetLatestAssistantVersion200JSONResponse(model.ShowAssistant(changed)), err
}

// runnable returns the assistant that a request to run names, and lays the request's
// configuration, context and metadata over the assistant's.
func (s server) runnable(ctx context.Context, body *model.RunCreate) (assistant.Assistant, error) {
	d := served(ctx)
	if d.Active == "" {
		return assistant.Assistant{}, fault.New(fault.Unavailable, "Deployment ID %s has no deployed revision yet.", d.Deployment)
	}
	owner, stored, err := s.named(ctx, body.AssistantID)
	if len(owner.Graphs) == 0 && !isID(body.AssistantID) {
		// The agent does not say which graphs it has, or cannot answer now; it will refuse a
		// graph that it does not have.
		stored, err = assistant.Default(d.Workspace, d.Deployment, body.AssistantID, d.Created), nil
	}
	if err == nil {
		err = s.mayRun(ctx, stored)
	}
	if err != nil {
		return assistant.Assistant{}, err
	}
	body.Config, body.Context, body.Metadata, err = stored.Apply(state.Present(body.Config), state.Present(body.Context), state.Present(body.Metadata))
	return stored, err
}
