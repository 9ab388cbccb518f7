package standalone_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// fileBytes returns how many bytes of files the client's workspace is shown to use.
func (c client) fileBytes(t *testing.T) int64 {
	t.Helper()
	for _, shown := range c.call(t, http.StatusOK, "GET", "/v2/workspaces/current", nil)["quotas"].([]any) {
		if entry, _ := shown.(map[string]any); entry["name"] == string(quota.FileBytes) {
			return int64(entry["used"].(float64))
		}
	}
	t.Fatal("the quota is not shown")
	return 0
}

// TestAttackADiskFullOfFiles has one workspace upload sources and keep builds until its files
// take all the space that they may. Deleting gives the space back.
func TestAttackADiskFullOfFiles(t *testing.T) {
	t.Parallel()
	const megabyte = 1 << 20
	limits := quota.Limits{}.With(quota.FileBytes, 30*megabyte)
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Quotas: limits, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	c := clientOf(credentials)
	refused := func(what string, answer map[string]any) {
		t.Helper()
		if detail, _ := answer["detail"].(string); !strings.Contains(detail, "quota file_bytes") || !strings.Contains(detail, "--quota file_bytes=N") {
			t.Errorf("%s: got %v", what, answer)
		}
	}
	source := c.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "source", "source": "internal_source", "secrets": []any{}, "source_config": map[string]any{}, "source_revision_config": map[string]any{},
	})
	deployment := fmt.Sprintf("/v2/deployments/%s", source["id"])
	grant := func(want int) map[string]any {
		return c.call(t, want, "POST", deployment+"/upload-url", map[string]any{})
	}
	put := func(size int) (status int, answer map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprint(grant(http.StatusOK)["upload_url"]), bytes.NewReader(make([]byte, size)))
		check.Must(t, err)
		request.Header.Set("Content-Type", "application/gzip")
		response, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		check.Must(t, err)
		if len(text) > 0 {
			check.Must(t, json.Unmarshal(text, &answer))
		}
		return response.StatusCode, answer
	}
	if status, answer := put(20 * megabyte); status != http.StatusOK {
		t.Fatalf("the first upload: got %d %v", status, answer)
	}
	status, answer := put(12 * megabyte)
	if status != http.StatusForbidden {
		t.Errorf("an upload too many: got %d %v", status, answer)
	}
	refused("an upload too many", answer)

	request := creation(agents(t, "dd if=/dev/zero of=big bs=1048576 count=12"), computetest.Serve)
	built := c.call(t, http.StatusCreated, "POST", "/v2/deployments", request)
	c.await(t, newest(built), "DEPLOYED")
	if used := c.fileBytes(t); used < 32*megabyte || used > 40*megabyte {
		t.Errorf("%d bytes are shown, want 32 MB and a little more", used)
	}
	refused("another upload", grant(http.StatusForbidden))
	request["name"] = "another"
	refused("another deployment", c.call(t, http.StatusForbidden, "POST", "/v2/deployments", request))
	refused("another revision", c.call(t, http.StatusForbidden, "POST", fmt.Sprintf("/v2/deployments/%s/revisions", built["id"]), map[string]any{}))

	c.call(t, http.StatusNoContent, "DELETE", deployment, nil)
	for again := time.NewTicker(20 * time.Millisecond); c.fileBytes(t) >= 20*megabyte; <-again.C {
	}
	c.await(t, newest(c.call(t, http.StatusCreated, "POST", "/v2/deployments", request)), "DEPLOYED")
}
