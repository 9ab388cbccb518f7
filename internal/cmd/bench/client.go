package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	httpclient "github.com/slipway-run/slipway/internal/cmd/client"
)

// client calls a server.
type client struct {
	http *fasthttp.Client
	// streams makes the requests whose answers are read as they come.
	streams *http.Transport
	*server
}

// maxIdle is how long a connection may stay unused; the servers close their connections later.
const maxIdle = 5 * time.Second

func newClient(s *server) *client {
	return &client{
		http:    &fasthttp.Client{MaxIdleConnDuration: maxIdle, MaxIdemponentCallAttempts: 1},
		streams: &http.Transport{DisableCompression: true},
		server:  s,
	}
}

// restart stops the server and starts it again on the same data directory.
func (c *client) restart(ctx context.Context) error {
	if err := c.stop(); err != nil {
		return err
	}
	c.http.CloseIdleConnections()
	c.streams.CloseIdleConnections()
	next, err := c.again(ctx)
	if err != nil {
		return err
	}
	*c.server = *next
	return nil
}

// post posts a body and returns the answer, which is read as it comes, if its status is a success.
func (c *client) post(ctx context.Context, url string, body any) (*http.Response, error) {
	to := httpclient.Server{URL: c.BaseURL, Key: c.APIKey, Tenant: c.TenantID}
	return httpclient.Over(c.streams, to).Send(ctx, http.MethodPost, strings.TrimPrefix(url, c.BaseURL), body)
}

// call makes a request and decodes the answer.
func (c *client) call(ctx context.Context, method, url string, body, answer any) error {
	var text bytes.Buffer
	if err := c.pass(ctx, method, url, body, &text); err != nil {
		return err
	}
	return json.Unmarshal(text.Bytes(), answer)
}

// discard makes a request and reads its answer without decoding it, as a proxy would: the cost
// of decoding is not a cost of the server.
func (c *client) discard(ctx context.Context, method, url string, body any) error {
	return c.pass(ctx, method, url, body, io.Discard)
}

// pass makes a request and writes the body of its answer. Package fasthttp takes half of the
// processor time that net/http needs, with its two goroutines per connection: processor time that
// the load generator uses is not available to the server.
func (c *client) pass(ctx context.Context, method, url string, body any, answer io.Writer) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(url)
	request.Header.SetMethod(method)
	c.authenticate(request.Header.Set)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		request.SetBodyRaw(encoded)
	}
	if deadline, ok := ctx.Deadline(); ok {
		request.SetTimeout(time.Until(deadline))
	}
	err := c.http.Do(request, response)
	if status := response.StatusCode(); err == nil && status >= 300 {
		err = fmt.Errorf("%d: %s", status, response.Body())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, url, err)
	}
	_, err = answer.Write(response.Body())
	return err
}

// deploy makes a repository of the agent and deploys it; it returns the URL of the agent server.
func (c *client) deploy(ctx context.Context, name, agent, work string) (string, error) {
	repository := filepath.Join(work, "agent")
	if err := os.CopyFS(repository, os.DirFS(agent)); err != nil {
		return "", err
	}
	for _, command := range []string{"init -q -b main", "add -A", "-c user.name=bench -c user.email=bench@localhost commit -q -m agent"} {
		git := exec.CommandContext(ctx, "git", append([]string{"-C", repository}, strings.Fields(command)...)...)
		if out, err := git.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", command, err, out)
		}
	}
	var deployment struct {
		rolledOut
		SourceConfig map[string]any `json:"source_config"`
	}
	if err := c.call(ctx, http.MethodPost, c.BaseURL+"/v2/deployments", map[string]any{
		"name": name, "source": "github", "secrets": []any{},
		"source_config":          map[string]any{"repo_url": "file://" + repository},
		"source_revision_config": map[string]any{"repo_ref": "main"},
	}, &deployment); err != nil {
		return "", err
	}
	revision, err := c.awaitRollout(ctx, deployment.rolledOut)
	if err == nil && revision.Status != "DEPLOYED" {
		err = fmt.Errorf("%s: %s", revision.Status, revision.Message)
	}
	return deployment.SourceConfig["custom_url"].(string), err
}

// thread creates a thread and returns its URL.
func (c *client) thread(ctx context.Context, agent string) (string, error) {
	return c.threadOf(ctx, agent, map[string]any{})
}

// threadOf is thread with a request.
func (c *client) threadOf(ctx context.Context, agent string, request map[string]any) (string, error) {
	var thread struct {
		ID string `json:"thread_id"`
	}
	err := c.call(ctx, http.MethodPost, agent+"/threads", request, &thread)
	return agent + "/threads/" + thread.ID, err
}

// run makes a run on a thread and returns its URL.
func (c *client) run(ctx context.Context, thread string, request map[string]any) (string, error) {
	var run struct {
		ID string `json:"run_id"`
	}
	err := c.call(ctx, http.MethodPost, thread+"/runs", request, &run)
	return thread + "/runs/" + run.ID, err
}

// question returns the body of a run. delay is the agent's time between tokens, in
// milliseconds.
func question(delay int, more map[string]any) map[string]any {
	body := map[string]any{
		"assistant_id": "agent",
		"input":        map[string]any{"messages": []any{map[string]any{"role": "user", "content": "what's the weather in sf?"}}},
		"config":       map[string]any{"configurable": map[string]any{"token_delay_ms": delay, "node_delay_ms": 0}},
	}
	maps.Copy(body, more)
	return body
}

// runAndJoin makes a run on a thread and waits for its values.
func (c *client) runAndJoin(ctx context.Context, thread string) error {
	run, err := c.run(ctx, thread, question(0, nil))
	if err != nil {
		return err
	}
	var values struct {
		Messages []any `json:"messages"`
	}
	if err := c.call(ctx, http.MethodGet, run+"/join", nil, &values); err != nil {
		return err
	}
	if len(values.Messages) != 4 {
		return fmt.Errorf("the run left %d messages, want 4", len(values.Messages))
	}
	return nil
}
