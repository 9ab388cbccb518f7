package standalone_test

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// quotaOf returns the limit of a quota that the client's workspace is shown.
func (c client) quotaOf(t *testing.T, name quota.Name) int {
	t.Helper()
	for _, shown := range c.call(t, http.StatusOK, "GET", "/v2/workspaces/current", nil)["quotas"].([]any) {
		if entry, _ := shown.(map[string]any); entry["name"] == string(name) {
			return int(entry["limit"].(float64))
		}
	}
	t.Fatalf("the quota %s is not shown", name)
	return 0
}

// another returns a client of another workspace of the server.
func (c client) another(t *testing.T, data, name string) client {
	t.Helper()
	tb := open(t, data)
	defer tb.Close()
	w, err := workspace.NewStore(tb, clock.System).Create(t.Context(), name)
	check.Must(t, err)
	hasher := fixtures.KeyAt(t, filepath.Join(data, standalone.KeyFile))
	_, key, err := apikey.NewStore(tb, hasher, clock.System).Issue(t.Context(), apikey.NewKey{Workspace: w.ID, Role: workspace.Admin, Name: name})
	check.Must(t, err)
	return client{c.base, map[string]string{"X-Api-Key": key, "X-Tenant-Id": w.ID}}
}

// stream opens the stream of the workspace's events, and returns its status with the text of a
// refusal, and a function that ends it.
func (c client) stream(t *testing.T) (status int, refusal string, end func()) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/v2/events", http.NoBody)
	check.Must(t, err)
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	end = func() { answer.Body.Close() }
	t.Cleanup(end)
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(answer.Body)
		check.Must(t, err)
		refusal = string(text)
	}
	return answer.StatusCode, refusal, end
}

// streams opens so many streams, and returns a function that ends the last one.
func (c client) streams(t *testing.T, number int) (endLast func()) {
	t.Helper()
	for i := range number {
		status, refusal, end := c.stream(t)
		if status != http.StatusOK {
			t.Fatalf("stream %d: got %d %s", i+1, status, refusal)
		}
		endLast = end
	}
	return endLast
}

// TestAttackStreamsThatTakeTheMemory has workspaces open as many streams as they get. Without a
// setting of the operator a workspace may have as many as the server's memory has room for while
// it is alone; each further workspace gets half of the rest.
func TestAttackStreamsThatTakeTheMemory(t *testing.T) {
	t.Parallel()
	const memory, room = 3 << 20, 32 // two thirds of the memory, at 64 KiB each
	data := t.TempDir()
	credentials, stop := serveWith(t, standalone.Config{Data: data, Memory: memory, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	first := clientOf(credentials)
	for _, name := range []quota.Name{quota.Streams, quota.ThreadStreams} {
		if limit := first.quotaOf(t, name); limit != room/2 {
			t.Errorf("the quota %s is %d by default, want %d", name, limit, room/2)
		}
	}
	second, third := first.another(t, data, "second"), first.another(t, data, "third")
	refused := func(who string, c client, status int, why string) {
		t.Helper()
		if got, text, _ := c.stream(t); got != status || !strings.Contains(text, why) {
			t.Errorf("%s workspace: got %d %s, want %d %s", who, got, text, status, why)
		}
	}
	first.streams(t, room/2)
	refused("the first", first, http.StatusTooManyRequests, "quota streams_at_once of")
	second.streams(t, room/4)
	refused("the second", second, http.StatusServiceUnavailable, "The server is working on too many large requests. Try again later.")
	end := third.streams(t, room/8)
	refused("the third", third, http.StatusServiceUnavailable, "too many large requests")
	first.call(t, http.StatusOK, "GET", "/v2/deployments", nil)
	end()
	for status := 0; status != http.StatusOK; {
		status, _, _ = third.stream(t)
	}
}

// TestTheOperatorsQuotaOfStreams is not lowered by the memory, which then refuses streams itself.
func TestTheOperatorsQuotaOfStreams(t *testing.T) {
	t.Parallel()
	limits := quota.Limits{}.With(quota.Streams, 100)
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Memory: 3 << 20, Quotas: limits, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	c := clientOf(credentials)
	if limit := c.quotaOf(t, quota.Streams); limit != 100 {
		t.Errorf("the quota is %d", limit)
	}
	c.streams(t, 16)
	if status, text, _ := c.stream(t); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream: got %d %s", status, text)
	}
}
