package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// agent is the agent of a deployment.
type agent struct {
	*api
	// name is the name of the deployment.
	name string
	// path is the path of the agent on the server. It is not the custom_url of the deployment,
	// which may be an address of a third party that must not get the key.
	path string
}

// agent finds the agent of a deployment, by the deployment's name or id.
func (a *api) agent(ctx context.Context, deployment string) (*agent, error) {
	d, err := a.deployment(ctx, deployment)
	if err != nil {
		return nil, err
	}
	if d.Active == "" {
		return nil, fmt.Errorf("no revision of %s serves; slipway deployments show %s prints the status of each revision", d.Name, d.Name)
	}
	return &agent{api: a, name: d.Name, path: "/d/" + d.ID}, nil
}

// assistant returns the assistant to talk to: the named assistant, the assistant of the graph
// agent, or the first assistant.
func (g *agent) assistant(ctx context.Context, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	var assistants []struct {
		ID    string `json:"assistant_id"`
		Graph string `json:"graph_id"`
	}
	if err := g.do(ctx, http.MethodPost, g.path+"/assistants/search", map[string]any{"limit": 100}, &assistants); err != nil {
		return "", err
	}
	for _, one := range assistants {
		if one.Graph == "agent" {
			return one.ID, nil
		}
	}
	if len(assistants) == 0 {
		return "", errors.New("the agent has no assistant")
	}
	return assistants[len(assistants)-1].ID, nil
}

// messages returns the messages of a thread.
func (g *agent) messages(ctx context.Context, thread string) ([]output.Message, error) {
	var state struct {
		Values json.RawMessage `json:"values"`
	}
	if err := g.do(ctx, http.MethodGet, g.path+"/threads/"+thread+"/state", nil, &state); err != nil {
		return nil, err
	}
	var values struct {
		Messages []output.Message `json:"messages"`
	}
	if json.Unmarshal(state.Values, &values) != nil {
		return nil, nil //nolint:nilerr // the state of another agent may be something else than messages
	}
	return values.Messages, nil
}

// answer is a run whose answer is being received.
type answer struct {
	agent  *agent
	thread string
	ID     string
	// question is the question that was asked.
	question string
	// last is the id of the last received event; allEvents before the first event.
	last string
	read client.Answer
}

// allEvents requests a run's events from the first event on.
const allEvents = "-1"

// start starts a run that interrupts a run that is under way.
func (g *agent) start(ctx context.Context, thread string, request map[string]any) (*answer, error) {
	maps.Copy(request, map[string]any{
		"multitask_strategy": "interrupt", "stream_mode": []string{"updates", "messages-tuple"}, "stream_resumable": true,
	})
	var run struct {
		ID string `json:"run_id"`
	}
	if err := g.do(ctx, http.MethodPost, g.path+"/threads/"+thread+"/runs", request, &run); err != nil {
		return nil, err
	}
	return g.run(thread, run.ID), nil
}

// run is a run whose answer is received from its beginning.
func (g *agent) run(thread, run string) *answer {
	return &answer{agent: g, thread: g.path + "/threads/" + thread, ID: run, last: allEvents, read: client.NewAnswer()}
}

// listen calls hear with each part of the answer until the run has ended. After a lost
// connection it connects again and continues after the last received event.
func (a *answer) listen(ctx context.Context, hear func(client.Part)) error {
	answered := time.Now()
	for {
		err := a.drain(ctx, hear, &answered)
		if err == nil || ctx.Err() != nil || !isPassing(err) || time.Since(answered) > reconnectLimit || !clock.Sleep(ctx, reconnectPause) {
			return err
		}
	}
}

func (a *answer) drain(ctx context.Context, hear func(client.Part), answered *time.Time) (err error) {
	stream, err := a.agent.Stream(ctx, http.MethodGet, a.thread+"/runs/"+a.ID+"/stream", nil, "Last-Event-ID", a.last)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for {
		event, err := stream.Next(ctx)
		*answered = time.Now() // up to the end of a silent stream, heartbeats were the answers
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if event.ID != "" {
			a.last = event.ID
		}
		err = a.read.Read(event, func(part client.Part) {
			if part.Message == nil || part.Message.Text() != "" {
				hear(part)
			}
		})
		if err != nil {
			return fmt.Errorf("read event %s of run %s: %w", event.Name, a.ID, err)
		}
	}
}

// status returns the final status of the run.
func (a *answer) status(ctx context.Context) (string, error) {
	var run struct {
		Status string `json:"status"`
	}
	err := a.agent.do(ctx, http.MethodGet, a.thread+"/runs/"+a.ID, nil, &run)
	return run.Status, err
}

// failure is the error of a run that failed. It names the commands that show where it failed.
func (a *answer) failure(reason string) error {
	return fmt.Errorf("run %s failed: %s\n  next: slipway runs explain %s %s %[1]s, or slipway logs %[3]s --run %[1]s",
		a.ID, quoted(strings.TrimRight(reason, ": \n")), a.agent.name, path.Base(a.thread))
}

// stop ends the run; the shown part of its answer stays in the thread.
func (a *answer) stop(ctx context.Context) error {
	return a.agent.do(ctx, http.MethodPost, a.thread+"/runs/"+a.ID+"/cancel?wait=true", nil, nil)
}
