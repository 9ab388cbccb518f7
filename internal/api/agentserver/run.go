package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// CreateRun creates a run and returns at once.
func (s server) CreateRun(ctx context.Context, request CreateRunRequestObject) (CreateRunResponseObject, error) {
	created, err := s.create(ctx, request.ThreadID, request.Body, run.Request{Notes: web.StoreAnswer(ctx, func(r run.Run) (web.Send, string, int64, error) {
		return showCreated(r).VisitCreateRunResponse, "", web.Untagged, nil
	})})
	return showCreated(created), err
}

func showCreated(r run.Run) CreateRun200JSONResponse {
	return CreateRun200JSONResponse{Body: model.ShowRun(r), Headers: CreateRun200ResponseHeaders{ContentLocation: location(r.Ref)}}
}

// CreateRunWait creates a run and answers with its final values.
func (s server) CreateRunWait(ctx context.Context, request CreateRunWaitRequestObject) (CreateRunWaitResponseObject, error) {
	created, err := s.create(ctx, request.ThreadID, request.Body, run.Request{})
	if err != nil {
		return nil, err
	}
	return s.waitFor(ctx, created, request.Body), nil
}

// waitFor returns the answer that waits for a run that the request has created.
func (s server) waitFor(ctx context.Context, created run.Run, body *model.RunCreate) *finalValues {
	f := &finalValues{server: s, ctx: ctx, ref: created.Ref, end: s.endOf(created), tie: tie{cancel: cancels(body)}}
	s.expectFirst(ctx, f.ref, f.cancel, untilDeadline(ctx))
	return f
}

// JoinRun answers with a run's final values, once it has ended.
func (s server) JoinRun(ctx context.Context, request JoinRunRequestObject) (JoinRunResponseObject, error) {
	return s.join(ctx, runRef(ctx, request.ThreadID, request.RunID), request.Params.CancelOnDisconnect)
}

func (s server) join(ctx context.Context, ref run.Ref, cancel *bool) (*finalValues, error) {
	waiting, err := s.Runs.WatchEnd(ctx, ref)
	if err != nil {
		return nil, err // before anything is sent
	}
	f := &finalValues{server: s, ctx: ctx, ref: ref, end: waiting.End, tie: tie{cancel: isTrue(cancel)}}
	if waiting.Over() {
		return f, nil
	}
	if err := s.expect(ctx, ref, f.cancel, untilDeadline(ctx)); err != nil {
		return nil, err
	}
	return f, nil
}

// endOf returns a function that waits for the end of a run that was just created and may have
// been rolled back since.
func (s server) endOf(created run.Run) func(context.Context) (*run.Run, error) {
	return func(ctx context.Context) (*run.Run, error) {
		ended, err := s.Runs.Await(ctx, created.Ref)
		if fault.Is(err, fault.NotFound) {
			ended.Status, err = run.Removed, nil
		}
		return &ended, err
	}
}

// GetRun reads a run.
func (s server) GetRun(ctx context.Context, request GetRunRequestObject) (GetRunResponseObject, error) {
	stored, err := s.Runs.Get(ctx, runRef(ctx, request.ThreadID, request.RunID))
	return GetRun200JSONResponse(model.ShowRun(stored)), err
}

// ListRuns lists a thread's runs, newest first.
func (s server) ListRuns(ctx context.Context, request ListRunsRequestObject) (ListRunsResponseObject, error) {
	filter := run.Filter{
		Status: run.Status(optional.Or(request.Params.Status, "")),
		Before: strings.ToLower(optional.Or(request.Params.Before, "")),
		Window: record.Window{Limit: optional.Or(request.Params.Limit, 10), Offset: optional.Or(request.Params.Offset, 0)},
	}
	ref := threadRef(ctx, request.ThreadID)
	// Runs show what their thread was asked.
	if err := s.mayRead(ctx, ref); err != nil {
		return nil, err
	}
	runs, more, err := s.Runs.List(ctx, ref, filter)
	if err != nil {
		return nil, err
	}
	selected := web.ShowAll(request.Params.Select, func(field model.RunField) string { return string(field) })
	return page[model.Run]{items: web.ShowAll(runs, model.ShowRun), selected: selected, offset: filter.Offset, more: more}, nil
}

// create checks a request to run and creates the run. also has the Notes of the request, and says
// whether it is Streamed.
func (s server) create(ctx context.Context, threadID string, body *model.RunCreate, also run.Request) (run.Run, error) {
	own := ownMetadata(body)
	request, err := s.request(ctx, body)
	if err != nil {
		return run.Run{}, err
	}
	request.Notes, request.Streamed = also.Notes, also.Streamed
	ref := threadRef(ctx, threadID)
	// A thread that does not exist has no checkpoint to continue from.
	makes := request.Fork == nil && body.IfNotExists != nil && *body.IfNotExists == model.IfNotExistsCreate
	if !ownDecisionOf(ctx).absent {
		created, err := s.Runs.Create(ctx, ref, request)
		if !makes || !fault.Is(err, fault.NotFound) {
			return created, err
		}
	} else if !makes {
		return run.Run{}, thread.NotFound(ref)
	}
	return s.createOnNew(ctx, ref, own, request)
}

// createOnNew makes a thread for the request's user, with its first run. If the thread exists by
// now, the run is created on it, if the user may see it. A new thread whose run is refused does not
// stay, unless another request has used it meanwhile. A thread that another request deletes before
// the run is created is made again.
func (s server) createOnNew(ctx context.Context, ref thread.Ref, metadata json.RawMessage, request run.Request) (run.Run, error) {
	return record.Retry(ctx, func(ctx context.Context) (run.Run, error) {
		t, isNew, err := s.newThread(ctx, ref, metadata, served(ctx).ThreadTTL(), true)
		if err != nil {
			return run.Run{}, err
		}
		created, err := s.Runs.CreateOn(ctx, t, request)
		if fault.Is(err, fault.NotFound) {
			if _, gone := s.Threads.Get(ctx, ref); fault.Is(gone, fault.NotFound) {
				return created, record.ErrLost
			}
		}
		if err != nil && isNew {
			err = errors.Join(err, s.deleteCreated(ctx, t))
		}
		return created, err
	})
}

// request checks a request to run.
func (s server) request(ctx context.Context, body *model.RunCreate) (run.Request, error) {
	named, err := s.runnable(ctx, body)
	if err != nil {
		return run.Request{}, err
	}
	input, err := runInput(body.Input)
	if err != nil {
		return run.Request{}, err
	}
	command, err := runCommand(body.Command)
	if err != nil {
		return run.Request{}, err
	}
	fork, err := forkOf(body)
	if err != nil {
		return run.Request{}, err
	}
	webhook, err := s.webhookOf(ctx, body.Webhook)
	if err != nil {
		return run.Request{}, err
	}
	return run.Request{
		AssistantID: named.Assistant, Graph: named.Graph, Strategy: run.Strategy(optional.Or(body.MultitaskStrategy, model.MultitaskStrategyEnqueue)), StreamModes: streamModes(body.StreamMode),
		Payload: run.Payload{
			Input: input, Command: command, Config: state.Present(body.Config), Context: state.Present(body.Context),
			Metadata: state.Present(body.Metadata), InterruptBefore: state.Present(body.InterruptBefore), InterruptAfter: state.Present(body.InterruptAfter),
			Tracer: state.Present(body.FrameworkTracer), Caller: callerOf(ctx),
		},
		Fork: fork, Durability: string(optional.Or(durability(body.Durability, body.CheckpointDuring), "")), StreamSubgraphs: isTrue(body.StreamSubgraphs),
		StrictResume: isTrue(body.StrictResume), FeedbackKeys: body.FeedbackKeys, Webhook: webhook, After: delay(body),
	}, nil
}

// webhookOf checks the address to which a run is to report its end; "" if there is no address.
// Where the deployment disables webhooks, runs do not call any address.
func (s server) webhookOf(ctx context.Context, url *string) (string, error) {
	address := optional.Text(url)
	switch {
	case address == "":
		return "", nil
	case s.Webhooks == nil:
		return "", fault.New(fault.Invalid, "This server does not offer: webhook.")
	}
	settings := served(ctx).Settings
	if err := cmp.Or(s.Webhooks.CheckURL("webhook", address), settings.Webhooks.Check("webhook", address)); err != nil || settings.HTTP.Disables("webhooks") {
		return "", err
	}
	return address, nil
}

// durability reads when checkpoints are written, also in the older form of the parameter; nil
// if the client does not say when.
func durability(sent *model.Durability, during *bool) *model.Durability {
	if sent != nil || during == nil {
		return sent
	}
	if *during {
		return new(model.DurabilityAsync)
	}
	return new(model.DurabilityExit)
}

// forkOf reads the checkpoint from which a run is to continue; nil is the newest. Clients also
// send the checkpoint in the configuration. forkOf puts it into the configuration, which names
// it to the agent.
func forkOf(body *model.RunCreate) (*run.Fork, error) {
	var config struct {
		Configurable *model.Checkpoint `json:"configurable"`
	}
	named := body.Checkpoint
	if named == nil && optional.Text(body.CheckpointID) == "" && state.Present(body.Config) != nil {
		if err := json.Unmarshal(body.Config, &config); err == nil {
			named = config.Configurable
		}
	}
	at, err := model.ReadCheckpoint(named, body.CheckpointID)
	if err != nil || (at.ID == "" && at.NS == "") {
		return nil, err
	}
	if at.ID == "" {
		return nil, fault.New(fault.Invalid, "The checkpoint of the subgraph %s needs a checkpoint_map, which names that of the graph under \"\".", at.NS)
	}
	body.Config = model.WithCheckpoint(state.Present(body.Config), at)
	return &run.Fork{ID: at.ID, Map: at.Map}, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

func streamModes(sent web.OneOrMany[model.StreamMode]) []string {
	if len(sent) == 0 {
		return []string{string(model.StreamModeValues)}
	}
	return web.ShowAll(sent, func(mode model.StreamMode) string { return string(mode) })
}

func runRef(ctx context.Context, threadID, runID string) run.Ref {
	return run.Ref{Ref: threadRef(ctx, threadID), Run: strings.ToLower(runID)}
}

// location returns the path of a run, relative to the agent server, for the header
// Content-Location. A run that has a thread of its own has the same id as that thread.
func location(ref run.Ref) string {
	if ref.Run == ref.Thread {
		return "/runs/" + ref.Run
	}
	return "/threads/" + ref.Thread + "/runs/" + ref.Run
}

// takeUpAt tells the client where to continue after the connection breaks: a path that clients
// append to the URL of the agent server, as they do with all other paths. A whole URL would
// not work: some clients append it too, other clients refuse it when they know the server by
// another name.
//
// The query repeats the parameters of the client: some clients repeat them on their own, and
// then send them twice, other clients do not.
func takeUpAt(w http.ResponseWriter, path string, query url.Values) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	w.Header().Set("Location", path)
}

// leaving returns a query that says whether a run is to end when the connection that waits for
// it is lost.
func leaving(cancels bool) url.Values {
	query := url.Values{}
	if cancels {
		query.Set("cancel_on_disconnect", "true")
	}
	return query
}

// distinct returns the values without repetitions: of equal values, only the first.
func distinct[T comparable](values []T) []T {
	var some []T
	for _, value := range values {
		if !slices.Contains(some, value) {
			some = append(some, value)
		}
	}
	return some
}

// finalValues is the answer of join and wait: it waits for the run's end, then writes the values
// that the run left behind. Unlike an event stream it is not ended early.
type finalValues struct {
	server server
	tie
	ctx context.Context
	ref run.Ref
	// end waits for the run's end.
	end func(context.Context) (*run.Run, error)
}

// Final values answer these operations.
func (f *finalValues) VisitCreateRunWaitResponse(w http.ResponseWriter) error { return f.write(w) }
func (f *finalValues) VisitCreateStatelessRunWaitResponse(w http.ResponseWriter) error {
	return f.write(w)
}
func (f *finalValues) VisitJoinRunResponse(w http.ResponseWriter) error            { return f.write(w) }
func (f *finalValues) VisitTakeUpStatelessRunResponse(w http.ResponseWriter) error { return f.write(w) }

func (f *finalValues) write(w http.ResponseWriter) error {
	defer func() { f.server.disconnected(f.ctx, f.ref, f.tie) }()
	w.Header().Set("Content-Location", location(f.ref))
	takeUpAt(w, location(f.ref)+"/join", leaving(f.cancel))
	return web.Await(f.ctx, w, f.server.Heartbeat, f.await)
}

func (f *finalValues) await(ctx context.Context) (json.RawMessage, error) {
	ended, err := f.end(ctx)
	if err != nil {
		return nil, err
	}
	f.over = true
	return f.server.values(ctx, ended)
}

// whyRemoved says why a run of a thread does not exist any more.
func (s server) whyRemoved(ctx context.Context, ref thread.Ref) (*run.Failure, error) {
	_, err := s.Threads.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return &run.Failure{Name: "ThreadDeleted", Message: "The thread was deleted."}, nil
	}
	return &run.Failure{Name: "RolledBack", Message: "The run was rolled back."}, err
}

// values returns the final values of a run. For a failed run it returns the error, for a run
// that paused with questions also the questions.
func (s server) values(ctx context.Context, ended *run.Run) (json.RawMessage, error) {
	r, err := s.Runs.GetSealed(ctx, *ended)
	if err != nil {
		return nil, err
	}
	if r.Status == run.Removed {
		if r.Failure, err = s.whyRemoved(ctx, r.Ref.Ref); err != nil {
			return nil, err
		}
	}
	if r.Failure != nil {
		return object(map[string]any{"__error__": r.Failure}), nil
	}
	left, err := s.Runs.Result(ctx, r)
	if err != nil {
		return nil, err
	}
	interrupts := model.Questions(r.Interrupts)
	if len(interrupts) == 0 { // clients read the first question of a run that has the member
		return left.Values.JSON(), nil
	}
	return record.Merge(left.Values.JSON(), object(map[string]any{run.MemberQuestions: interrupts}))
}

// ExplainRun says why a run ended as it did, and when its parts were done.
func (s server) ExplainRun(ctx context.Context, request ExplainRunRequestObject) (ExplainRunResponseObject, error) {
	e, err := s.Runs.Explain(ctx, runRef(ctx, request.ThreadID, request.RunID))
	if err != nil {
		return nil, err
	}
	shown := ExplainRun200JSONResponse{
		RunID: e.Run.Run, ThreadID: e.Run.Thread, Status: model.RunStatus(e.Run.Status),
		Evidence: append([]string{}, e.Evidence...), Timeline: make([]model.RunMoment, len(e.Timeline)), HasMore: e.More,
		Cause: optional.Of(e.Cause), Remedy: optional.Of(e.Remedy), CreatedAt: clock.Format(e.Run.Created),
	}
	if !e.Run.Started.IsZero() {
		shown.StartedAt = new(clock.Format(e.Run.Started))
	}
	if e.Run.Status.Final() {
		shown.EndedAt = new(clock.Format(e.Run.Updated))
	}
	for i, moment := range e.Timeline {
		shown.Timeline[i] = model.RunMoment{Kind: model.RunMomentKind(moment.Kind), Nodes: append([]string{}, moment.Nodes...), Attempt: moment.Attempt, At: clock.Format(moment.At)}
	}
	return shown, nil
}
