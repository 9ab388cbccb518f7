package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
)

// poisons returns the configurations of repositories that fail, each in a different way. The
// marker is the argument of the processes that they leave behind.
func poisons(marker string) map[string]framework {
	return map[string]framework{
		"does not install": {"graphs": map[string]string{"agent": "./agent.mjs:graph"}, "env": map[string]string{"GREETING": "hello"}, "node_version": "99"},
		"build dies":       agentConfig().with("build", "kill -9 $$"),
		"build kills":      agentConfig().with("build", "kill -9 $PPID; exit 3"),
		"build leaves":     agentConfig().with("build", "for i in 1 2 3 4 5 6 7 8; do env -i setsid sleep "+marker+" & done; exit 3"),
		"agent dies":       agentConfig().with("start", "kill -9 $$"),
	}
}

// attacks are the attacks of the agent in testdata/hostile. Each attack ends its run as an
// error.
var attacks = []string{"flood", "garble", "kill", "fork", "fill", "connect", "crash"}

const (
	// mostPoisoned is how many deployments a hostile tenant has at most at a time.
	mostPoisoned = 8
	// hostilePause is the pause between two actions of a hostile tenant.
	hostilePause = 200 * time.Millisecond
)

// hostileTenant is a separate workspace beside the clients of a chaos test. It deploys
// repositories that fail, and an agent that attacks the server and the other agents.
type hostileTenant struct {
	*chaos
	rng *rand.Rand
	// tenant is the client of the hostile workspace.
	tenant *server
	agent  *deployment
	// poisoned holds the repositories by their kind of failure, deployed holds their
	// deployments.
	poisoned map[string]*repository
	deployed []deploymentBody
	// runs holds the addresses of the accepted runs, by their attacks.
	runs map[string][]string
	// marker is the argument of the processes that builds and agents leave behind.
	marker string
}

// trusting returns the flags of a server that runs the agent of a hostile tenant also where it
// cannot keep tenants apart in every respect: nobody else may notice this agent's attacks there.
func trusting() []string {
	if *kind != "standalone" || os.Geteuid() == 0 && child.Separates(nil) {
		return nil
	}
	return []string{"--trust-agents"}
}

// newHostileTenant adds a workspace with a hostile agent to a one-machine server, and returns
// nil if the machine cannot isolate tenants.
func (c *chaos) newHostileTenant(s *server, rng *rand.Rand) *hostileTenant {
	on, isLocal := s.target.(*local)
	if !isLocal || *kind != "standalone" || !child.Confines() {
		c.t.Log("there is no hostile tenant: this server has none, or cannot keep tenants apart")
		return nil
	}
	operator := func(args ...string) string {
		out, err := exec.CommandContext(c.t.Context(), built.slipway, append(args, "--data", on.data())...).Output()
		if err != nil {
			c.t.Fatalf("slipway %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	id := operator("workspaces", "create", "hostile")
	h := &hostileTenant{
		chaos: c, rng: rng, poisoned: map[string]*repository{}, runs: map[string][]string{}, marker: fmt.Sprint(3600 + rng.IntN(1_000_000)),
		tenant: &server{credentials: credentials{BaseURL: s.BaseURL, APIKey: operator("keys", "create", "--workspace", id), TenantID: id}},
	}
	for name, config := range poisons(h.marker) {
		h.poisoned[name] = newRepository(c.t)
		h.poisoned[name].write(c.t, "framework.json", config)
		h.poisoned[name].commit(c.t)
	}
	repo := newRepository(c.t)
	if err := build(filepath.Join("testdata", "hostile"), "-ldflags", "-s -w", "-o", filepath.Join(repo.dir, "agent")); err != nil {
		c.t.Fatal(err)
	}
	repo.write(c.t, "framework.json", agentConfig())
	repo.commit(c.t)
	h.agent = h.tenant.deploy(c.t, repo, "main")
	return h
}

// run does every action once, and then one random action after the other.
func (h *hostileTenant) run() {
	names := slices.Sorted(maps.Keys(h.poisoned))
	for _, name := range names {
		h.deploy(name)
	}
	for _, attack := range attacks {
		h.attack(attack)
	}
	ticker := time.NewTicker(hostilePause)
	defer ticker.Stop()
	for !h.finished() {
		switch h.rng.IntN(3) {
		case 0:
			if len(h.deployed) < mostPoisoned {
				h.deploy(names[h.rng.IntN(len(names))])
			}
		case 1:
			h.remove()
		case 2:
			// The last attack is left out, because an agent that crashes repeatedly is not started
			// any more.
			h.attack(attacks[h.rng.IntN(len(attacks)-1)])
		}
		select {
		case <-ticker.C:
		case <-h.over:
		}
	}
}

// request sends a request of the hostile tenant, and reports whether it was accepted. The
// server may refuse it, or be down.
func (h *hostileTenant) request(method, address string, body, out any) bool {
	got, err := h.tenant.do(h.t.Context(), method, address, body)
	switch {
	case err != nil:
		h.lost(err)
		return false
	case got.status >= http.StatusInternalServerError && got.status != http.StatusServiceUnavailable:
		h.errorf("%s %s of the hostile tenant: status %d: %s", method, address, got.status, got.body)
		return false
	case got.status >= http.StatusBadRequest:
		return false
	}
	if out != nil {
		if err := json.Unmarshal(got.body, out); err != nil {
			h.errorf("%s %s of the hostile tenant: %v: %s", method, address, err, got.body)
			return false
		}
	}
	return true
}

func (h *hostileTenant) deploy(name string) {
	var made deploymentBody
	if h.request("POST", "/v2/deployments", creation(h.poisoned[name].url(), "main"), &made) {
		h.deployed = append(h.deployed, made)
		h.count("poisoned: " + name)
	}
}

// remove deletes a deployment of a poisoned repository, in any state of its rollout.
func (h *hostileTenant) remove() {
	if len(h.deployed) < mostPoisoned/2 {
		return
	}
	i := h.rng.IntN(len(h.deployed))
	if h.request("DELETE", "/v2/deployments/"+h.deployed[i].ID, nil, nil) {
		h.count("poisoned deleted")
	}
	// A deployment may also be gone if the server died before it could answer.
	h.deployed = slices.Delete(h.deployed, i, i+1)
}

// attack starts a run of the hostile agent.
func (h *hostileTenant) attack(name string) {
	var thread struct {
		ID string `json:"thread_id"`
	}
	if !h.request("POST", h.agent.url+"/threads", map[string]any{}, &thread) {
		return
	}
	address := h.agent.url + "/threads/" + thread.ID + "/runs"
	body := ask("attack", map[string]any{"attack": name, "marker": h.marker}).with("stream_mode", "custom")
	var run runBody
	if h.request("POST", address, body, &run) {
		h.runs[name] = append(h.runs[name], address+"/"+run.ID)
		h.count("attack: " + name)
	}
}

// conclude checks that all poisoned work has failed and no attack has succeeded, and that
// nothing of the tenant is left after its deployments are deleted.
func (h *hostileTenant) conclude() {
	for name, runs := range h.runs {
		for _, address := range runs {
			h.wantFailed(name, address)
		}
	}
	for _, made := range h.deployed {
		d := &deployment{server: h.tenant, path: "/v2/deployments/" + made.ID}
		eventually(h.t, "the poisoned revision has failed", func() (bool, any) {
			got := d.revision(h.t, value(made.LatestRevision))
			return got.failed() && value(got.Text) != "", got
		})
		h.tenant.call(h.t, http.StatusNoContent, "DELETE", d.path, nil, nil)
	}
	h.tenant.call(h.t, http.StatusNoContent, "DELETE", h.agent.path, nil, nil)
	eventually(h.t, "no process of the hostile tenant is left", func() (bool, any) {
		left := sleepers(h.marker)
		return len(left) == 0, left
	})
}

// wantFailed waits until the run of an attack is an error, and checks that it reports no
// success.
func (h *hostileTenant) wantFailed(name, address string) {
	var left values
	h.tenant.call(h.t, http.StatusOK, "GET", address+"/join", nil, &left)
	var run runBody
	h.tenant.call(h.t, http.StatusOK, "GET", address, nil, &run)
	switch {
	case run.Status != "error" || left.Error == nil:
		h.errorf("the attack %s is %s with %+v", name, run.Status, left.Error)
	case left.Error.Name == "Hostile" && left.Error.Message != "":
		h.errorf("the attack %s succeeded: it %s", name, left.Error.Message)
	default:
		h.count("attack failed with " + left.Error.Name)
	}
}

// sleepers returns the processes that a hostile tenant has left behind.
func sleepers(marker string) (pids []string) {
	for _, file := range commandLines() {
		arguments, err := os.ReadFile(file)
		if err == nil && bytes.Equal(arguments, []byte("sleep\x00"+marker+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
