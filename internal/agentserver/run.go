package agentserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/deployment"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/state"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/web"
)

// CreateRun creates a run and returns at once.
func (s server) CreateRun(ctx context.Context, request CreateRunRequestObject) (CreateRunResponseObject, error) {
	created, err := s.create(ctx, request.ThreadID, request.Body)
	if err != nil {
		return nil, err
	}
	return CreateRun200JSONResponse{
		Body:    showRun(created),
		Headers: CreateRun200ResponseHeaders{ContentLocation: location(created.Ref)},
	}, nil
}

// CreateRunWait creates a run and answers with its final values.
func (s server) CreateRunWait(ctx context.Context, request CreateRunWaitRequestObject) (CreateRunWaitResponseObject, error) {
	created, err := s.create(ctx, request.ThreadID, request.Body)
	if err != nil {
		return nil, err
	}
	return finalValues{s, ctx, created.Ref}, nil
}

// JoinRun answers with a run's final values, once it has ended.
func (s server) JoinRun(ctx context.Context, request JoinRunRequestObject) (JoinRunResponseObject, error) {
	if err := notServed(map[string]bool{"cancel_on_disconnect": isTrue(request.Params.CancelOnDisconnect)}); err != nil {
		return nil, err
	}
	found, err := s.Runs.Get(ctx, runRef(ctx, request.ThreadID, request.RunID))
	if err != nil {
		return nil, err // before anything is sent
	}
	return finalValues{s, ctx, found.Ref}, nil
}

// GetRun reads a run.
func (s server) GetRun(ctx context.Context, request GetRunRequestObject) (GetRunResponseObject, error) {
	found, err := s.Runs.Get(ctx, runRef(ctx, request.ThreadID, request.RunID))
	if err != nil {
		return nil, err
	}
	return GetRun200JSONResponse(showRun(found)), nil
}

// ListRuns lists a thread's runs, newest first.
func (s server) ListRuns(ctx context.Context, request ListRunsRequestObject) (ListRunsResponseObject, error) {
	filter := run.Filter{Window: table.Window{Limit: 10}}
	if limit := request.Params.Limit; limit != nil {
		filter.Limit = *limit
	}
	if offset := request.Params.Offset; offset != nil {
		filter.Offset = *offset
	}
	if status := request.Params.Status; status != nil {
		filter.Status = run.Status(*status)
	}
	found, err := s.Runs.List(ctx, threadRef(ctx, request.ThreadID), filter)
	if err != nil {
		return nil, err
	}
	shown := make(ListRuns200JSONResponse, len(found))
	for i, r := range found {
		shown[i] = showRun(r)
	}
	return shown, nil
}

// create checks a request to run and creates the run.
func (s server) create(ctx context.Context, threadID string, body *RunCreate) (run.Run, error) {
	if err := refuse(body); err != nil {
		return run.Run{}, err
	}
	graph, err := graphOf(served(ctx), body.AssistantID)
	if err != nil {
		return run.Run{}, err
	}
	if err := state.CheckInput(body.Input); err != nil {
		return run.Run{}, fault.Shape(fault.Detail{Loc: []any{"body", "input"}, Msg: err.Error(), Type: "value_error"})
	}
	ref := threadRef(ctx, threadID)
	if body.IfNotExists != nil && *body.IfNotExists == IfNotExistsCreate {
		if _, err := s.Threads.Create(ctx, ref, nil, true); err != nil {
			return run.Run{}, err
		}
	}
	strategy := run.Enqueue
	if body.MultitaskStrategy != nil {
		strategy = run.Strategy(*body.MultitaskStrategy)
	}
	return s.Runs.Create(ctx, ref, run.Request{
		AssistantID: assistantID(graph), Graph: graph, Strategy: strategy, StreamModes: streamModes(body.StreamMode),
		Input: present(body.Input), Command: present(body.Command), Config: present(body.Config), Context: present(body.Context),
		Metadata: present(body.Metadata), InterruptBefore: present(body.InterruptBefore), InterruptAfter: present(body.InterruptAfter),
	})
}

// refuse names what this server does not do, rather than leave it out silently.
func refuse(body *RunCreate) error {
	return notServed(map[string]bool{
		"after_seconds":                body.AfterSeconds != nil && *body.AfterSeconds > 0,
		"checkpoint":                   body.Checkpoint != nil,
		"checkpoint_id":                body.CheckpointID != nil,
		"multitask_strategy: rollback": body.MultitaskStrategy != nil && *body.MultitaskStrategy == MultitaskStrategyRollback,
		"on_disconnect: cancel":        body.OnDisconnect != nil && *body.OnDisconnect == OnDisconnectCancel,
		"webhook":                      body.Webhook != nil,
		"feedback_keys":                len(body.FeedbackKeys) > 0,
	})
}

func notServed(asked map[string]bool) error {
	var names []string
	for name, is := range asked {
		if is {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fault.New(fault.Invalid, "This server does not offer: %s.", strings.Join(names, ", "))
}

func isTrue(b *bool) bool { return b != nil && *b }

// graphOf finds the graph that an assistant runs: an assistant is named by its graph, or by the id of the graph's default assistant.
func graphOf(d deployment.Deployment, assistant string) (string, error) {
	if d.Active == "" {
		return "", fault.New(fault.Unavailable, "Deployment ID %s has no deployed revision yet.", d.Deployment)
	}
	for _, graph := range d.Graphs {
		if assistant == graph || strings.EqualFold(assistant, assistantID(graph)) {
			return graph, nil
		}
	}
	return "", fault.New(fault.NotFound, "Assistant %s not found. The deployment's graphs are: %s.", assistant, strings.Join(d.Graphs, ", "))
}

// assistantNamespace is the UUID namespace of default assistants, which clients of the public service know (RFC 9562: OID namespace, with
// one byte changed there).
var assistantNamespace = uuid.MustParse("6ba7b821-9dad-11d1-80b4-00c04fd430c8")

func assistantID(graph string) string {
	return uuid.NewSHA1(assistantNamespace, []byte(graph)).String()
}

func streamModes(asked web.OneOrMany[StreamMode]) []string {
	modes := make([]string, 0, len(asked))
	for _, mode := range asked {
		modes = append(modes, string(mode))
	}
	if len(modes) == 0 {
		return []string{string(StreamModeValues)}
	}
	return modes
}

// showRun is a run as the interface has it.
func showRun(r run.Run) Run {
	return Run{
		RunID:             r.Run,
		ThreadID:          r.Thread,
		AssistantID:       r.AssistantID,
		Status:            RunStatus(r.Status),
		Metadata:          orEmpty(r.Metadata),
		MultitaskStrategy: MultitaskStrategy(r.Strategy),
		Kwargs: object(map[string]any{
			"input": r.Input, "command": r.Command, "config": orEmpty(r.Config), "context": orEmpty(r.Context), "stream_mode": r.StreamModes,
			"interrupt_before": r.InterruptBefore, "interrupt_after": r.InterruptAfter,
		}),
		CreatedAt: clock.Format(r.Created),
		UpdatedAt: clock.Format(r.Updated),
	}
}

func orEmpty(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return emptyObject
	}
	return raw
}

func runRef(ctx context.Context, threadID, runID string) run.Ref {
	return run.Ref{Ref: threadRef(ctx, threadID), Run: strings.ToLower(runID)}
}

// location is the path of a run, relative to the agent server, as Content-Location has it.
func location(ref run.Ref) string { return "/threads/" + ref.Thread + "/runs/" + ref.Run }

// takeUpAt tells where a connection that breaks is to be taken up again: a path that clients append to the URL at which they have the agent
// server, as they do with all others. A whole URL would not do: some clients append it too, others refuse it when they know the server by
// another name.
func takeUpAt(w http.ResponseWriter, path string) { w.Header().Set("Location", path) }

// finalValues is the answer of join and wait: it waits for the run's end, then writes the values that the run left behind.
type finalValues struct {
	server
	ctx context.Context
	ref run.Ref
}

// VisitJoinRunResponse implements JoinRunResponseObject.
func (f finalValues) VisitJoinRunResponse(w http.ResponseWriter) error { return f.write(w) }

// VisitCreateRunWaitResponse implements CreateRunWaitResponseObject.
func (f finalValues) VisitCreateRunWaitResponse(w http.ResponseWriter) error { return f.write(w) }

func (f finalValues) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Location", location(f.ref))
	takeUpAt(w, location(f.ref)+"/join")
	return web.Await(f.ctx, w, f.Heartbeat, func(ctx context.Context) (json.RawMessage, error) {
		ended, err := f.Runs.Await(ctx, f.ref)
		if err != nil {
			return nil, err
		}
		return f.values(ctx, ended)
	})
}

// values are the final values of a run: of a failed one its error, of one that paused for a person also its questions.
func (s server) values(ctx context.Context, r run.Run) (json.RawMessage, error) {
	if r.Failure != nil {
		return object(map[string]any{"__error__": r.Failure}), nil
	}
	left, err := s.Runs.Result(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Interrupts == nil {
		return left.Values.JSON(), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(left.Values.JSON(), &members); err != nil {
		return nil, err
	}
	members["__interrupt__"] = record.Encode(questions(r.Interrupts))
	return record.Encode(members), nil
}
