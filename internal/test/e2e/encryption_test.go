//go:build agents

package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/test/check"
)

// sealed is a deployment whose repository encrypts what the agent server stores.
type sealed struct {
	*deployment

	marker string
}

// under returns the header of a request with an encryption context.
func under(tenant string) []string {
	return []string{"X-Encryption-Context", base64.StdEncoding.EncodeToString([]byte(`{"tenant": "` + tenant + `"}`))}
}

// TestAgentsOwnEncryption has conversations with an agent whose repository encrypts, reads the
// server's files, kills the server, and attacks the handlers.
func TestAgentsOwnEncryption(t *testing.T) {
	s := newAgentServer(t)
	repo := newRepository(t)
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "encryption"))))
	repo.commit(t)
	d := sealed{s.deployExample(t, "encryption", repo), "marker-" + id.New(time.Now())}
	said, err := tell(d.client(t, "Python", "encryption"), d.marker)
	check.Must(t, err)
	d.isNowhere(t)
	d.survives(t)
	d.refuses(t, strings.TrimSpace(said))
	d.isNowhere(t)
	d.keepsTheKey(t, repo)
	d.remove(t)
}

// vector is what the repository embeds texts to, as it would be stored.
var vector = string([]byte{0, 0, 0, 0x3f, 0, 0, 0, 0xbf, 0, 0, 0, 0x3f, 0, 0, 0, 0x3f})

// isNowhere checks that no file of the server has the text that clients and the agent exchange, or
// its vectors.
func (d sealed) isNowhere(t *testing.T) {
	t.Helper()
	on, ok := d.server.target.(*local)
	if !ok {
		t.Fatal("the server is not a local one")
	}
	looked := 0
	err := filepath.WalkDir(on.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "builds" {
			return fs.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		looked++
		for _, form := range []string{d.marker, base64.StdEncoding.EncodeToString([]byte(d.marker))[:40], vector} {
			if at := bytes.Index(text, []byte(form)); at >= 0 && !strings.Contains(path, "logs") {
				t.Errorf("%s has the marker or a vector in: %q", path, text[max(0, at-200):min(len(text), at+100)])
			}
		}
		return nil
	})
	if err != nil || looked < 3 {
		t.Errorf("read %d files: %v", looked, err)
	}
}

// survives kills the server in the middle of a run, which a server that starts again completes.
func (d sealed) survives(t *testing.T) {
	t.Helper()
	var thread, run map[string]any
	d.server.call(t, http.StatusOK, "POST", d.url+"/threads", map[string]any{}, &thread, under("tenant-b")...)
	at := d.url + "/threads/" + thread["thread_id"].(string)
	asked := map[string]any{"assistant_id": "agent", "input": map[string]any{"text": d.marker, "slow": 4}}
	d.server.call(t, http.StatusOK, "POST", at+"/runs", asked, &run, under("tenant-b")...)
	eventually(t, "the run's first events", func() (bool, any) {
		var now map[string]any
		d.server.call(t, http.StatusOK, "GET", at+"/runs/"+run["run_id"].(string), nil, &now)
		return now["status"] == "running", now["status"]
	})
	d.server.kill9(t)
	d.isNowhere(t)
	d.server.restart(t)
	var state struct {
		Values struct{ Seen []string }
		Next   []string
	}
	begun := time.Now()
	eventually(t, "the run's question", func() (bool, any) {
		got := d.server.call(t, http.StatusOK, "GET", at+"/state", nil, &state)
		return len(state.Next) == 1 && state.Next[0] == "ask", string(got.body)
	})
	if len(state.Values.Seen) != 1 || state.Values.Seen[0] != d.marker {
		t.Errorf("the state is %+v", state)
	}
	t.Logf("the run went on %s after the restart", time.Since(begun).Round(time.Millisecond))
}

// refuses checks that requests whose values cannot be encrypted or decrypted are refused, write
// nothing, and disturb no other request.
func (d sealed) refuses(t *testing.T, known string) {
	t.Helper()
	before := d.count(t)
	for _, tenant := range []string{"unknown", "tenant-throws", "tenant-hangs", "tenant-nonsense"} {
		got := d.server.call(t, http.StatusServiceUnavailable, "POST", d.url+"/threads", map[string]any{"metadata": map[string]any{"note": d.marker}}, nil, under(tenant)...)
		if !strings.Contains(string(got.body), "own encryption has failed") || strings.Contains(string(got.body), "hunter2") {
			t.Errorf("%s: %s", tenant, got.body)
		}
		if d.server.call(t, http.StatusOK, "GET", d.url+"/threads/"+known+"/state", nil, nil); d.count(t) != before {
			t.Errorf("%s: a thread was written", tenant)
		}
	}
	for _, header := range []string{"no base64", base64.StdEncoding.EncodeToString([]byte("[1]")), strings.Repeat("e30=", 2000)} {
		d.server.call(t, http.StatusUnprocessableEntity, "GET", d.url+"/threads/"+known, nil, nil, "X-Encryption-Context", header)
	}
	// A value whose key is lost, or whose handler hangs, keeps its item from being read, and no
	// other item.
	for _, tenant := range []string{"tenant-is-lost", "tenant-stalls"} {
		lost := map[string]any{"namespace": []string{tenant}, "key": "k", "value": map[string]any{"text": d.marker}}
		d.server.call(t, http.StatusNoContent, "PUT", d.url+"/store/items", lost, nil, under(tenant)...)
		got := d.server.call(t, http.StatusServiceUnavailable, "GET", d.url+"/store/items?namespace="+tenant+"&key=k", nil, nil)
		if !strings.Contains(string(got.body), "own encryption has failed, or does not answer") || strings.Contains(string(got.body), "hunter2") {
			t.Errorf("%s: %s", tenant, got.body)
		}
	}
	d.server.call(t, http.StatusOK, "GET", d.url+"/store/items?namespace=notes&key=last", nil, nil)
}

func (d sealed) count(t *testing.T) (threads int) {
	t.Helper()
	got := d.server.call(t, http.StatusOK, "POST", d.url+"/threads/count", map[string]any{}, nil)
	check.Must(t, json.Unmarshal(got.body, &threads))
	return threads
}

// keepsTheKey checks that a revision without the key is refused by name, and that the deployment
// serves on.
func (d sealed) keepsTheKey(t *testing.T, repo *repository) {
	t.Helper()
	repo.change(t, "framework.json", ",\n  \"encryption\": {\"path\": \"./own.py:encryption\"}", "")
	d.awaitFailed(t, d.patch(t, "main"), "DEPLOY_FAILED", "ENCRYPTION_MISSING", "encryption: the data of this deployment are encrypted")
	d.count(t)
}
