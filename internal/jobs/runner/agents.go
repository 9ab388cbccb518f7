package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Agents sends deployed agents the requests that belong to no run.
type Agents struct {
	Deployments Deployments
	// Target returns the target where agents run. Some platforms know it only when they are
	// asked first.
	Target func(context.Context) (compute.Target, error)
	Graph  *graph.Client
	// Log gets the failures of agents; default slog.Default.
	Log *slog.Logger
	// ServerURL returns the URL of a deployment's agent server; nil if agents do not reach it.
	ServerURL func(deployment string) string
	// Wait is how long a request waits for an agent that is being restarted; default 10 s. A
	// request waits for an agent that slept until the agent has started, or cannot start.
	Wait time.Duration
}

func (a *Agents) log() *slog.Logger { return cmp.Or(a.Log, slog.Default()) }

// describeLimit is how long an agent may take to describe itself. The next request asks an agent
// that hangs again. typeLimit is how long the agent may take if it makes schemas of types: a
// function that then goes without them still answers within its 29 s.
const (
	describeLimit = 30 * time.Second
	typeLimit     = 25 * time.Second
)

// describedCost is the memory that a byte of a description takes while it is decoded: a graph
// that is "{}" takes some 200 bytes, and its name and the signs around it take eight.
const describedCost = 24

// Describe asks a deployment's agent for its graphs, by graph.OperationDescribe. The decoding
// takes its memory from the budget.Hold of the context, if there is one. If the agent does not
// answer, the error is a fault.Unavailable.
func (a *Agents) Describe(ctx context.Context, workspace, deployment string, request graph.Invocation) (graph.Description, error) {
	_, endpoint, done, err := a.acquire(ctx, workspace, deployment, "")
	if err != nil {
		return graph.Description{}, err
	}
	defer done()
	limit := describeLimit
	if request.Typed {
		limit = typeLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	hold, taken, full := budget.HoldOf(ctx), int64(0), error(nil)
	defer func() { hold.Give(taken) }() // the caller bounds what it keeps
	description, err := a.Graph.Describe(ctx, endpoint, request, func(bytes int) error {
		if full = hold.Take(ctx, int64(bytes)*describedCost); full == nil {
			taken += int64(bytes) * describedCost
		}
		return full
	})
	if fault.Is(full, fault.Unavailable) {
		return graph.Description{}, full
	}
	if refused, ok := errors.AsType[*graph.RefusedError](err); ok && refused.IsUnknown() {
		return graph.Description{}, nil // the agent does not describe itself
	}
	return description, unavailableFault(err)
}

// rulingLimit is how long the repository's own authentication may take.
const rulingLimit = 10 * time.Second

// Rule asks the authentication of a deployment's repository, in the active release. If the
// agent does not answer in time, or not with a ruling, the error is a fault.Unavailable.
func (a *Agents) Rule(ctx context.Context, workspace, deployment string, invocation graph.Invocation) (graph.Ruling, error) {
	_, endpoint, done, err := a.acquire(ctx, workspace, deployment, "")
	if err != nil {
		return graph.Ruling{}, err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, rulingLimit)
	defer cancel()
	ruling, err := a.Graph.Rule(limited, endpoint, invocation)
	switch {
	case err == nil:
		return ruling, nil
	case ctx.Err() != nil:
		return graph.Ruling{}, context.Cause(ctx)
	}
	a.log().WarnContext(ctx, "the repository's own authentication gave no answer", "deployment", deployment, "error", err)
	return graph.Ruling{}, fault.New(fault.Unavailable, "The agent's own authentication does not answer.")
}

// embeddingLimit is how long the repository may take to embed texts. Its own limit is 5 s
// shorter.
const embeddingLimit = 65 * time.Second

// Embed asks a deployment's agent for the vectors of texts, in the active release. If there
// are no vectors, the error is a fault.Unavailable that names the cause. The vectors of a small
// item may be large: they take their memory from the budget.Hold of the context, if there is
// one, as the events of a run do.
func (a *Agents) Embed(ctx context.Context, workspace, deployment string, texts graph.Texts) (graph.Embeddings, error) {
	_, endpoint, done, err := a.acquire(ctx, workspace, deployment, "")
	if err != nil {
		return graph.Embeddings{}, err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, embeddingLimit)
	defer cancel()
	hold, full := budget.HoldOf(ctx), error(nil)
	embeddings, err := a.Graph.Embed(limited, endpoint, texts, func(bytes int) error {
		full = hold.Take(limited, int64(bytes)*eventCost)
		return full
	})
	switch {
	case ctx.Err() != nil:
		return graph.Embeddings{}, context.Cause(ctx)
	case fault.Is(full, fault.Unavailable):
		return graph.Embeddings{}, full
	case err != nil:
		a.log().WarnContext(ctx, "the agent has embedded no texts", "deployment", deployment, "error", err)
		return graph.Embeddings{}, fault.New(fault.Unavailable, "The agent does not embed texts at the moment.")
	case embeddings.Error != "":
		a.log().WarnContext(ctx, "the agent's embedding has failed", "deployment", deployment, "error", beginning(embeddings.Error, maxCause))
		return graph.Embeddings{}, fault.New(fault.Unavailable, "The agent's embedding has failed: %s", beginning(embeddings.Error, maxCause))
	}
	return embeddings, nil
}

// Visit lets the HTTP application of a deployment's repository answer a request, in the active
// release. send sends the request. If the agent is not available, the error is a
// fault.Unavailable.
func (a *Agents) Visit(ctx context.Context, workspace, deployment string, send func(client *graph.Client, endpoint compute.Endpoint, serverURL string) error) error {
	_, endpoint, done, err := a.acquire(ctx, workspace, deployment, "")
	if err != nil {
		return err
	}
	defer done()
	serverURL := ""
	if a.ServerURL != nil {
		serverURL = a.ServerURL(deployment)
	}
	err = send(a.Graph, endpoint, serverURL)
	if _, ended := errors.AsType[*graph.UnavailableError](err); ended {
		a.log().WarnContext(ctx, "the repository's own application gave no answer", "deployment", deployment, "error", err)
		return fault.New(fault.Unavailable, "The agent does not answer at the moment.")
	}
	return err
}

// servesLimit is how long a starting agent may take when a caller asks whether it serves.
const servesLimit = time.Second

// Serves reports whether a deployment's active release is available now. A release that sleeps
// is available, and is not woken.
func (a *Agents) Serves(ctx context.Context, workspace, deployment string) (bool, error) {
	release, err := a.Deployments.Serving(ctx, workspace, deployment, "")
	if fault.Is(err, fault.Unavailable) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	target, err := a.Target(ctx)
	if err != nil {
		return false, fmt.Errorf("find agents: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, servesLimit)
	defer cancel()
	serves, err := target.Serves(wait, release)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return false, nil
	}
	return serves, err
}

// UpdateState lets a deployment's agent change a state, and passes the checkpoints that the
// agent makes of the change to take. The error is a fault.Invalid if the graph refuses the
// change, and a fault.Unavailable if the agent does not answer. If a canary sends nothing
// before it ends, the active release is asked. The agent's answer takes its memory
// from the budget.Hold of the context, if it has a Hold, and is bounded as an event of a run is.
func (a *Agents) UpdateState(ctx context.Context, workspace, deployment string, invocation graph.Invocation, take func(graph.Checkpoint) error) error {
	invocation.Operation = graph.OperationUpdateState
	err := a.updateState(ctx, workspace, deployment, invocation.ThreadID, invocation, take)
	if errors.Is(err, errCanary) {
		return a.updateState(ctx, workspace, deployment, "", invocation, take)
	}
	return err
}

// updateState is UpdateState by the release that serves a thread, "" for the active release.
// The error is errCanary if this release is a canary that has sent nothing.
func (a *Agents) updateState(ctx context.Context, workspace, deployment, thread string, invocation graph.Invocation, take func(graph.Checkpoint) error) error {
	release, endpoint, done, err := a.acquire(ctx, workspace, deployment, thread)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	silent := func(err error) error {
		if _, ended := errors.AsType[*graph.UnavailableError](err); ended && onTrial(ctx, a.Deployments, release, thread) {
			return errCanary
		}
		if refused, ok := errors.AsType[*graph.RefusedError](err); ok {
			return fault.New(fault.Invalid, "The agent refused the change: %s", refused.Body)
		}
		return unavailableFault(err)
	}
	stream, err := a.Graph.Invoke(ctx, endpoint, invocation)
	if err != nil {
		return silent(err)
	}
	defer stream.Close()
	hold, full := budget.HoldOf(ctx), error(nil)
	stream.Reserve(func(bytes int) error {
		full = hold.Take(ctx, int64(bytes)*eventCost)
		return full
	})
	for answered := false; ; answered = true {
		event, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case fault.Is(full, fault.Unavailable):
			return full
		case err != nil && !answered:
			return silent(err)
		case err != nil:
			return unavailableFault(err)
		case event.Name == graph.EventError:
			f := failure(event.Data)
			return fault.New(fault.Invalid, "The graph refused the change: %s: %s", f.Name, f.Message)
		case event.Name != graph.EventCheckpoint:
			continue
		}
		if err := takeCheckpoint(ctx, hold, event.Data, take); err != nil {
			return err
		}
	}
}

// takeCheckpoint passes a checkpoint to take when there is room for its values.
func takeCheckpoint(ctx context.Context, hold *budget.Hold, data json.RawMessage, take func(graph.Checkpoint) error) error {
	values := budget.Values(data)
	if values > budget.MostValues {
		return fault.New(fault.Invalid, "The graph's answer has more than %d JSON values.", budget.MostValues)
	}
	if err := hold.Take(ctx, int64(values)*valueCost); err != nil {
		return err
	}
	c, err := checkpointOf(data)
	if err != nil {
		return fault.New(fault.Unavailable, "The agent's answer breaks the contract: checkpoint: %v.", err)
	}
	return take(c)
}

// acquire returns the agent that serves a thread, or that serves requests without a thread
// (""). The error is errCanary if this agent is a canary that is not available.
func (a *Agents) acquire(ctx context.Context, workspace, deployment, thread string) (release compute.Ref, endpoint compute.Endpoint, done func(), err error) {
	if release, err = a.Deployments.Serving(ctx, workspace, deployment, thread); err != nil {
		return release, endpoint, nil, err
	}
	target, err := a.Target(ctx)
	if err != nil {
		return release, endpoint, nil, fmt.Errorf("find agents: %w", err)
	}
	endpoint, done, err = compute.AcquireWithin(ctx, target, release, cmp.Or(a.Wait, 10*time.Second))
	switch {
	case err == nil:
		return release, endpoint, done, nil
	case ctx.Err() != nil || !isTargetUnavailable(err):
		return release, endpoint, nil, fmt.Errorf("acquire release: %w", err)
	case onTrial(ctx, a.Deployments, release, thread):
		return release, endpoint, nil, errCanary
	default:
		return release, endpoint, nil, fault.New(fault.Unavailable, "The agent does not answer at the moment.")
	}
}

func isTargetUnavailable(err error) bool {
	_, ok := errors.AsType[*compute.UnavailableError](err)
	return ok
}

// unavailableFault returns the fault of an agent that broke off, refused a request which changes
// nothing, or broke the contract.
func unavailableFault(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Unavailable, "The agent could not answer: %s", beginning(err.Error(), maxCause))
}
