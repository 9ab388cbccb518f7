package standalone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
)

// TestAnAgentThatDiesAfterItsPromotionIsRolledBack deploys an agent that answers its health check
// and ends a moment later, time and again.
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

	// Without any further request there is a third revision, made from the first.
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
	printed := messages(c.call(t, http.StatusOK, "GET", third+"/logs?type=deploy", nil), "logs")
	for len(printed) == 0 { // lines are kept a moment after they were printed
		<-again.C
		printed = messages(c.call(t, http.StatusOK, "GET", third+"/logs?type=deploy", nil), "logs")
	}
	if len(printed) != 1 || printed[0] != "serving with ***" {
		t.Errorf("the agent that serves has printed %q", printed)
	}
	list := c.call(t, http.StatusOK, "GET", path+"/revisions", nil)
	if all, _ := list["resources"].([]any); len(all) != 3 {
		t.Errorf("there are %d revisions", len(all))
	}
}

// TestAnAgentThatDiesIsTold has the serving agent end again and again: this is one event, with
// the agent's last output.
func TestAnAgentThatDiesIsTold(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c, repo := clientOf(credentials), agents(t, "true")
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(repo, computetest.Serve, "LATER", "exit"))
	c.await(t, newest(d), "DEPLOYED")
	restarted := time.NewTicker(20 * time.Millisecond)
	defer restarted.Stop()
	for printed := 0; printed < 5; { // each start and each end prints a line
		<-restarted.C
		printed = len(messages(c.call(t, http.StatusOK, "GET", newest(d)+"/logs?type=deploy", nil), "logs"))
	}
	var told []map[string]any
	list, _ := c.call(t, http.StatusOK, "GET", fmt.Sprintf("/v2/deployments/%s/events?limit=100", d["id"]), nil)["resources"].([]any)
	for _, e := range list {
		if e, _ := e.(map[string]any); strings.HasPrefix(fmt.Sprint(e["type"]), "agent.") {
			told = append(told, e)
		}
	}
	if len(told) != 1 || told[0]["type"] != "agent.crashed" {
		t.Fatalf("told of the agent: %v", told)
	}
	data, _ := told[0]["data"].(map[string]any)
	if why := fmt.Sprint(data["status_message"]); data["status_reason"] != "AGENT_ENDED" || !strings.Contains(why, "exited with code 9") || !strings.Contains(why, "crashing soon after") ||
		!strings.HasSuffix(newest(d), fmt.Sprint(data["revision_id"])) {
		t.Errorf("got %v", data)
	}
}
