package standalone_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheVersionIsOne checks each place that shows it: for the server, a deployment and a
// build.
func TestTheVersionIsOne(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c := clientOf(credentials)
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(agents(t, "true"), computetest.Serve))
	c.await(t, newest(d), "DEPLOYED")
	info := c.call(t, http.StatusOK, "GET", "/d/"+d["id"].(string)+"/info", nil)
	built, _ := c.call(t, http.StatusOK, "GET", newest(d), nil)["build"].(map[string]any)
	for shown, got := range map[string]any{"version of /info": info["version"], "image_version": d["image_version"], "builder": built["builder"]} {
		if got != build.Version() {
			t.Errorf("%s is %v, want %s", shown, got, build.Version())
		}
	}
}

// TestAStartWithoutRoomForFiles says why SQLite cannot make the files that it has beside the table.
func TestAStartWithoutRoomForFiles(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	check.Must(t, os.MkdirAll(filepath.Join(data, standalone.DatabaseFile+"-wal"), 0o700))
	look := func(string) (disk.Usage, error) {
		return disk.Usage{Free: 50 << 30, Total: 100 << 30, Files: 6_400_000}, nil
	}
	_, err := standalone.Open(standalone.Config{Listen: "127.0.0.1:0", Data: data, Disk: look, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "The server's disk can hold few more files: 0, and 32000 are kept free.") {
		t.Errorf("got %v", err)
	}
}

// TestADiskThatIsNearlyFull refuses requests that add data with 507, and allows all others,
// until the disk has room again.
func TestADiskThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	const roomy, scarce = 10 << 30, 200 << 20
	var free atomic.Int64
	free.Store(roomy)
	look := func(string) (disk.Usage, error) { return disk.Usage{Free: free.Load(), Total: 100 << 30}, nil }
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Disk: look, Log: slog.New(slog.DiscardHandler)})
	defer stop()
	c := clientOf(credentials)
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(agents(t, "true"), computetest.Serve, "SECRET", "1"))
	c.await(t, newest(d), "DEPLOYED")
	deployment := fmt.Sprintf("/v2/deployments/%s", d["id"])
	source := c.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "source", "source": "internal_source", "secrets": []any{}, "source_config": map[string]any{}, "source_revision_config": map[string]any{},
	})
	granted := c.call(t, http.StatusOK, "POST", fmt.Sprintf("/v2/deployments/%s/upload-url", source["id"]), map[string]any{})
	agent := fmt.Sprintf("/d/%s", d["id"])
	thread := c.call(t, http.StatusOK, "POST", agent+"/threads", map[string]any{})
	path := fmt.Sprintf("%s/threads/%s", agent, thread["thread_id"])
	if ok := c.call(t, http.StatusOK, "GET", "/ok", nil); ok["ok"] != true || ok["detail"] != nil {
		t.Errorf("with room: got %v", ok)
	}

	free.Store(scarce)
	item := map[string]any{"namespace": []any{"a"}, "key": "k", "value": map[string]any{}}
	for _, request := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v2/deployments", creation(agents(t, "true"), computetest.Serve)},
		{"PATCH", deployment, map[string]any{"secrets": environment("AGENT", computetest.Serve)}},
		{"POST", "/v2/secrets", map[string]any{"name": "s", "value": "v"}},
		{"POST", agent + "/threads", map[string]any{}},
		{"POST", path + "/runs", map[string]any{"assistant_id": "agent"}},
		{"POST", path + "/state", map[string]any{"values": map[string]any{}}},
		{"POST", agent + "/runs/wait", map[string]any{"assistant_id": "agent"}},
		{"PUT", agent + "/store/items", item},
	} {
		refused := c.call(t, http.StatusInsufficientStorage, request.method, request.path, request.body)
		if detail, _ := refused["detail"].(string); !strings.Contains(detail, "nearly full: 200MiB are free, and 512MiB are kept free.") {
			t.Errorf("%s %s: got %v", request.method, request.path, refused)
		}
	}
	_, upload, _ := strings.Cut(fmt.Sprint(granted["upload_url"]), credentials.BaseURL)
	wantStatus(t, "an upload", "PUT", credentials.BaseURL+upload, map[string]string{"Content-Type": "application/gzip"}, http.StatusInsufficientStorage)
	if ok := c.call(t, http.StatusOK, "GET", "/ok", nil); ok["ok"] != false || !strings.Contains(fmt.Sprint(ok["detail"]), "nearly full") {
		t.Errorf("without room: got %v", ok)
	}
	c.call(t, http.StatusOK, "GET", deployment, nil)
	c.call(t, http.StatusOK, "GET", path+"/state", nil)
	c.call(t, http.StatusOK, "POST", agent+"/store/items/search", map[string]any{"namespace_prefix": []any{}})
	c.call(t, http.StatusNoContent, "DELETE", path, nil)

	free.Store(roomy)
	c.call(t, http.StatusOK, "POST", agent+"/threads", map[string]any{})
}
