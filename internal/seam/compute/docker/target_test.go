//go:build docker

package docker_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	computetest.Run(t, func(t *testing.T) compute.Target { return newMachine(t) })
	computetest.RunRestart(t, func(t *testing.T) compute.Target { return newMachine(t) })
}

// TestWhatCannotRunSaysWhy covers all failures that a person can correct.
func TestWhatCannotRunSaysWhy(t *testing.T) {
	t.Parallel()
	small := json.RawMessage(`{"memory_mb":32,"memory_limit_mb":32}`)
	for name, c := range map[string]struct {
		agent, image string
		spec         json.RawMessage
		reason       string
		words        []string
	}{
		"the image does not exist":       {image: "127.0.0.1:1/no/such:image", reason: compute.ReasonImageUnavailable, words: []string{"127.0.0.1:1/no/such:image", "connection refused"}},
		"the image has no name":          {image: "Not An Image", reason: compute.ReasonImageUnavailable, words: []string{"Not An Image", "invalid reference format"}},
		"the digest is not there":        {image: "127.0.0.1:1/agent@sha256:" + strings.Repeat("0", 64), reason: compute.ReasonImageUnavailable, words: []string{"connection refused"}},
		"it speaks another language":     {agent: "stranger", reason: compute.ReasonNoContract, words: []string{"does not speak the container contract", "404 Not Found"}},
		"it uses too much memory":        {agent: "hog", spec: small, reason: compute.ReasonOutOfMemory, words: []string{"32 MB", "memory_limit_mb", "16 MB"}},
		"it ends at once":                {agent: computetest.Exit, reason: compute.ReasonStartFailed, words: []string{"exited with code 7", "line 59"}},
		"an init container fails":        {agent: computetest.Serve, spec: json.RawMessage(`{"init_containers":[{"name":"migrate","image":"` + image + `","env":[{"name":"AGENT","value":"fail"}]}]}`), reason: compute.ReasonStartFailed, words: []string{"init container migrate exited with code 3", "nothing to migrate"}},
		"a sidecar's program is missing": {agent: computetest.Serve, spec: json.RawMessage(`{"sidecars":[{"name":"proxy","image":"` + image + `","command":["/no/such"]}]}`), reason: compute.ReasonStartFailed, words: []string{"sidecar proxy", "/no/such"}},
		"a sidecar's image is missing":   {agent: computetest.Serve, spec: json.RawMessage(`{"sidecars":[{"name":"proxy","image":"127.0.0.1:1/no/such:image"}]}`), reason: compute.ReasonImageUnavailable, words: []string{"127.0.0.1:1/no/such:image"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, r := newMachine(t), computetest.NewRelease(c.agent)
			r.Artifact.Image, r.ResourceSpec = c.image, c.spec
			m.apply(t, r)
			got := m.want(t, r, compute.Failed, c.reason)
			for _, words := range c.words {
				if !strings.Contains(got.Message, words) {
					t.Errorf("message %q does not say %q", got.Message, words)
				}
			}
			wantNothing(t, r)
		})
	}
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *docker.Config) { c.Host, c.EngineLimit = "tcp://127.0.0.1:1", time.Millisecond }), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	if got := m.want(t, r, compute.Failed, compute.ReasonNoContainerEngine); !strings.Contains(got.Message, "no container engine") {
		t.Errorf("got %q", got.Message)
	}
}

// TestReleasesWaitForAnEngineTogether has many releases that are to run while an engine is
// starting, but never answers.
func TestReleasesWaitForAnEngineTogether(t *testing.T) {
	t.Parallel()
	const releases = 20
	var asked atomic.Int64
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info") {
			asked.Add(1)
		}
		http.Error(w, "it is starting", http.StatusServiceUnavailable)
	}))
	defer starting.Close()
	m := newMachine(t, func(c *docker.Config) {
		c.Host, c.EngineLimit = "tcp://"+starting.Listener.Addr().String(), 500*time.Millisecond
	})
	all := make([]compute.Release, releases)
	for i := range all {
		all[i] = computetest.NewRelease(computetest.Serve)
		m.apply(t, all[i])
	}
	for _, r := range all {
		m.want(t, r, compute.Failed, compute.ReasonNoContainerEngine)
	}
	if got := asked.Load(); got >= releases {
		t.Errorf("the engine was asked %d times for %d releases", got, releases)
	}
}

// TestAReplicaIsAPod runs an init container, an agent and a sidecar with one volume, and
// checks the settings that the engine got.
func TestAReplicaIsAPod(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease("fetch")
	r.Env["PASSWORD"] = "open-sesame"
	r.ResourceSpec = json.RawMessage(`{
		"cpu":0.25,"cpu_limit":0.5,"memory_mb":64,"memory_limit_mb":128,"labels":{"team":"a","slipway.revision":"forged"},
		"volumes":[{"name":"shared"},{"name":"fast","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}}],
		"volume_mounts":[{"name":"shared","mountPath":"/shared","readOnly":true},{"name":"fast","mountPath":"/fast"}],
		"init_containers":[{"name":"first","image":"` + image + `","env":[{"name":"AGENT","value":"write"},{"name":"FILE","value":"/data/word"},{"name":"TEXT","value":"hello"}],"volumeMounts":[{"name":"shared","mountPath":"/data"}]}],
		"sidecars":[{"name":"second","image":"` + image + `","env":[{"name":"AGENT","value":"beside"},{"name":"FILE","value":"/mine/word"}],"volumeMounts":[{"name":"shared","mountPath":"/mine"}],
			"resources":{"limits":{"cpu":"100m","memory":"64Mi"}},"securityContext":{"runAsUser":1000,"readOnlyRootFilesystem":true}}]}`)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	eventually(t, "the sidecar's words are not in the log", func() bool { return slices.Contains(m.lines(t, r), "the sidecar says hello <nil> <nil>") })
	roles := map[string]bool{}
	for _, id := range containers(t, "slipway.revision="+r.Revision) {
		seen, err := engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		check.Must(t, err)
		c := seen.Container
		roles[c.Config.Labels["slipway.role"]] = true
		if labels := c.Config.Labels; labels["team"] != "a" || labels["slipway.deployment"] != r.Deployment || labels["slipway.workspace"] != r.Workspace {
			t.Errorf("labels %v", labels)
		}
		if strings.Contains(strings.Join(append(c.Args, c.Path), " "), "open-sesame") || strings.Contains(string(mustJSON(t, c.Config.Labels)), "open-sesame") {
			t.Error("a secret is on a command line or label")
		}
		switch c.Config.Labels["slipway.role"] {
		case "agent":
			if c.HostConfig.NanoCPUs != 5e8 || c.HostConfig.CPUShares != 256 || c.HostConfig.Memory != 128<<20 || c.HostConfig.MemoryReservation != 64<<20 {
				t.Errorf("resources %+v", c.HostConfig.Resources)
			}
			for _, binding := range c.HostConfig.PortBindings {
				if binding[0].HostIP.String() != "127.0.0.1" {
					t.Errorf("published at %v", binding)
				}
			}
		case "second":
			if c.Config.User != "1000" || !c.HostConfig.ReadonlyRootfs || c.HostConfig.NanoCPUs != 1e8 || c.HostConfig.Memory != 64<<20 {
				t.Errorf("sidecar %q %+v", c.Config.User, c.HostConfig.Resources)
			}
		}
	}
	if !roles["agent"] || !roles["first"] || !roles["second"] {
		t.Errorf("containers %v", roles)
	}
	check.Must(t, m.Remove(t.Context(), r.Ref))
	wantNothing(t, r)
}

// TestTheLogHasAllStartsOfASidecar has a sidecar that ends at once, each time the engine starts it
// again.
func TestTheLogHasAllStartsOfASidecar(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.ResourceSpec = json.RawMessage(`{"volumes":[{"name":"own","emptyDir":{}}],"sidecars":[
		{"name":"second","image":"` + image + `","env":[{"name":"AGENT","value":"crash"},{"name":"FILE","value":"/own/starts"}],"volumeMounts":[{"name":"own","mountPath":"/own"}]}]}`)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	var starts []string
	eventually(t, "the log does not have five starts", func() bool {
		starts = slices.DeleteFunc(m.lines(t, r), func(line string) bool { return !strings.HasPrefix(line, "start ") })
		return len(starts) >= 5
	})
	if diff := cmp.Diff([]string{"start 1", "start 2", "start 3", "start 4", "start 5"}, starts[:5]); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
	check.Must(t, m.Remove(t.Context(), r.Ref))
}

// TestAnImageOfARepositoryHasTheResourcesOfItsDeployment because no ResourceSpec says how much
// it may use.
func TestAnImageOfARepositoryHasTheResourcesOfItsDeployment(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{CPU: 0.5, MemoryMB: 96, MinScale: 1, MaxScale: 1}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	for _, id := range containers(t, "slipway.revision="+r.Revision) {
		seen, err := engine.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		check.Must(t, err)
		if got := seen.Container.HostConfig.Resources; got.NanoCPUs != 5e8 || got.Memory != 96<<20 || got.MemorySwap != 96<<20 || got.PidsLimit == nil || *got.PidsLimit != replica.ProcessLimit {
			t.Errorf("resources %+v", got)
		}
	}
	r = computetest.NewRelease("hog")
	r.Resources = compute.Resources{MemoryMB: 32}
	m.apply(t, r)
	if got := m.want(t, r, compute.Failed, compute.ReasonOutOfMemory); !strings.Contains(got.Message, "more than the 32 MB of memory that it may. ") {
		t.Errorf("got %q", got.Message)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	check.Must(t, err)
	return text
}

// TestATagIsResolvedOnce gives a tag to another image while a release runs. The release keeps
// its own image, also when it is applied again.
func TestATagIsResolvedOnce(t *testing.T) {
	t.Parallel()
	tag := registryHost + "/moving:" + strings.ToLower(t.Name())
	_, err := engine.ImageTag(t.Context(), client.ImageTagOptions{Source: image, Target: tag})
	check.Must(t, err)
	check.Must(t, push(t.Context(), tag))
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	r.Artifact.Image = tag
	m.apply(t, r)
	pinned := m.want(t, r, compute.Healthy, "").Image
	if !strings.HasPrefix(pinned, registryHost+"/moving@sha256:") {
		t.Fatalf("the image is %q", pinned)
	}
	_, err = engine.ImageRemove(t.Context(), tag, client.ImageRemoveOptions{})
	check.Must(t, err)
	again := computetest.NewRelease(computetest.Serve)
	again.Artifact.Image = pinned
	m.apply(t, again)
	if got := m.want(t, again, compute.Healthy, "").Image; got != pinned {
		t.Errorf("applied by its digest the image is %q, want %q", got, pinned)
	}
}

// TestAnEarlierServersContainersAreRemoved starts a server after another server was killed.
func TestAnEarlierServersContainersAreRemoved(t *testing.T) {
	t.Parallel()
	killed := newMachine(t)
	r := computetest.NewRelease(computetest.Serve)
	killed.apply(t, r)
	killed.want(t, r, compute.Healthy, "")
	left := containers(t, "slipway.revision="+r.Revision)
	next := openMachine(t, killed.dir)
	if got := containers(t, "slipway.revision="+r.Revision); len(left) != 1 || slices.Contains(got, left[0]) {
		t.Errorf("containers %v were there, %v are", left, got)
	}
	next.want(t, r, compute.Absent, "")
}

// TestTheNetworkIsMadeAgain for a new replica, after the operator has removed unused networks.
func TestTheNetworkIsMadeAgain(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	check.Must(t, m.Remove(t.Context(), r.Ref))
	wantNothing(t, r)
	name, err := os.ReadFile(filepath.Join(m.dir, "containers", "server"))
	check.Must(t, err)
	_, err = engine.NetworkRemove(t.Context(), "slipway-"+strings.TrimSpace(string(name)), client.NetworkRemoveOptions{})
	check.Must(t, err)
	next := computetest.NewRelease(computetest.Serve)
	m.apply(t, next)
	m.want(t, next, compute.Healthy, "")
}

// TestWhatAnEngineKeptIsRemoved loses an engine that keeps its containers running, as with Docker's
// live restore. When the engine answers again, one replica is left.
func TestWhatAnEngineKeptIsRemoved(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	whole := url.URL{Scheme: "http", Host: "docker"}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&whole) },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return engine.Dialer()(ctx) }, DisableKeepAlives: true,
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(before.Close)
	lost := make(chan struct{}, 1)
	m := newMachine(t, func(c *docker.Config) {
		c.Host = "tcp://" + before.Listener.Addr().String()
		c.Alarm = func(context.Context, compute.Ref, compute.Status) { lost <- struct{}{} }
	})
	r := computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	label := "slipway.revision=" + r.Revision
	first := containers(t, label)
	away.Store(true)
	before.CloseClientConnections()
	<-lost
	away.Store(false)
	eventually(t, "the replica was not replaced", func() bool {
		now := containers(t, label)
		return len(now) == 1 && !slices.Equal(now, first)
	})
	m.want(t, r, compute.Healthy, "")
}

// TestAPersonKillsAnAgent by the engine, which is not taken for a lack of memory.
func TestAPersonKillsAnAgent(t *testing.T) {
	t.Parallel()
	ended := make(chan compute.Status, 1)
	m := newMachine(t, func(c *docker.Config) {
		c.Alarm = func(_ context.Context, _ compute.Ref, status compute.Status) { ended <- status }
	})
	r := computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	for _, id := range containers(t, "slipway.revision="+r.Revision) {
		_, err := engine.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"})
		check.Must(t, err)
	}
	if got := <-ended; got.Reason != compute.ReasonEnded || !strings.Contains(got.Message, "was ended by signal 9") {
		t.Errorf("the agent ended with %s %q", got.Reason, got.Message)
	}
}

// TestScale asks for two replicas, and has enough callers for a third.
func TestScale(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *docker.Config) { c.IdleLimit = 100 * time.Millisecond }), computetest.NewRelease(computetest.Serve)
	r.Resources = compute.Resources{MinScale: 2, MaxScale: 3}
	r.Env["N_JOBS_PER_WORKER"] = "1"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	count := func() int { return len(containers(t, "slipway.revision="+r.Revision)) }
	eventually(t, "there are not two replicas", func() bool { return count() == 2 })
	var leave []func()
	for range 3 {
		_, done, err := m.Acquire(patience(t), r.Ref)
		check.Must(t, err)
		leave = append(leave, done)
	}
	eventually(t, "there are not three replicas", func() bool { return count() == 3 })
	for _, done := range leave {
		done()
	}
	eventually(t, "there are still three replicas", func() bool { return count() == 2 })
	check.Must(t, m.Remove(t.Context(), r.Ref))
	wantNothing(t, r)
}
