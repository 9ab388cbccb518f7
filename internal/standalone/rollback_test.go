package standalone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/compute/computetest"
)

// TestAnAgentThatDiesAfterItsPromotionIsRolledBack deploys an agent that answers its health check and ends a moment later, time and again.
func TestAnAgentThatDiesAfterItsPromotionIsRolledBack(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c, repo := clientOf(credentials), agents(t, "true")
	body := creation(repo, computetest.Serve, "SECRET", "first-words")
	body["auto_rollback"] = true
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", body)
	path := fmt.Sprintf("/v2/deployments/%s", d["id"])
	first := newest(d)
	c.await(t, first, "DEPLOYED")

	d = c.call(t, http.StatusOK, "PATCH", path, map[string]any{"secrets": environment("AGENT", computetest.Serve, "LATER", "exit")})
	second := newest(d)
	c.await(t, second, "DEPLOYED")

	// Nobody does anything, and there is a third, made from the first.
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for newest(d) == second {
		<-again.C
		d = c.call(t, http.StatusOK, "GET", path, nil)
	}
	third := newest(d)
	c.await(t, third, "DEPLOYED")
	d = c.call(t, http.StatusOK, "GET", path, nil)
	if newest(d) != third || d["active_revision_id"] != d["latest_revision_id"] {
		t.Errorf("got %v, want the third revision to be active", d)
	}
	if got, want := fmt.Sprint(d["secrets"]), fmt.Sprint(body["secrets"]); got != want {
		t.Errorf("the secrets are %s, want those of the first revision", got)
	}
	r := c.call(t, http.StatusOK, "GET", second, nil)
	why, _ := r["status_message"].(string)
	if r["status"] != "DEPLOYED" || r["status_reason"] != "ROLLED_BACK" || !strings.Contains(why, "3 times") || !strings.Contains(why, first[strings.LastIndex(first, "/")+1:]) {
		t.Errorf("got %v", r)
	}
	if got := messages(c.call(t, http.StatusOK, "GET", third+"/logs?type=deploy", nil), "logs"); len(got) != 1 || got[0] != "serving with ***" {
		t.Errorf("the agent that serves has printed %q", got)
	}
	list := c.call(t, http.StatusOK, "GET", path+"/revisions", nil)
	if all, _ := list["resources"].([]any); len(all) != 3 {
		t.Errorf("there are %d revisions", len(all))
	}
}
