package controlplane_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Rules about the environment of a container, which a listener sees.
const (
	limitDefaults  = "Each `*_limit` that is not given is deployed as 2x its request, a value of the queue as that of the server; they are not shown."
	secretsReach   = "Secrets are environment variables of the deployment's container, predefined ones of the agent server among them."
	projectReaches = "The tracing project's name and id reach the container; traces are on where the deployment has a key for them."
	secretsOutside = "`secret_references`: to secrets of the workspace, or at a listener to those of its cluster; not shown while there are none; their names are no secret's; the release has them."
	referencesMade = "PATCH replaces all `secret_references`, which makes a revision; an empty list removes them, null and absence keep them; a redeploy brings back its own."
)

// release claims the only work of a listener, and returns the release that it must run.
func (f *fixture) release(t *testing.T, listenerPath, holder string) object {
	t.Helper()
	work := workOf(t, f.call(t, "POST", listenerPath+"/claim", object{"holder": holder}))
	if len(work) != 1 || work[0]["verb"] != "apply" {
		t.Fatalf("the work is %v", work)
	}
	release, _ := work[0]["release"].(object)
	return release
}

// TestWhatAContainerIsGiven reads it in the place of the listener, which makes the container.
func TestWhatAContainerIsGiven(t *testing.T) {
	t.Parallel()
	rule(t, limitDefaults)
	rule(t, secretsReach)
	rule(t, projectReaches)
	f := setUpRollouts(t)
	for name, c := range map[string]struct {
		sent, deployed object
		secrets        []any
		env            map[string]string
	}{
		"all-defaults": {
			sent: object{"min_scale": 1, "max_scale": 3, "cpu": 0.5, "memory_mb": 512, "db_cpu": 1, "db_memory_mb": 1024, "redis_memory_mb": 128},
			deployed: object{
				"min_scale": 1.0, "max_scale": 3.0, "cpu": 0.5, "cpu_limit": 1.0, "memory_mb": 512.0, "memory_limit_mb": 1024.0,
				"queue_min_scale": 1.0, "queue_max_scale": 3.0, "queue_cpu": 0.5, "queue_cpu_limit": 1.0, "queue_memory_mb": 512.0, "queue_memory_limit_mb": 1024.0,
				"db_cpu": 1.0, "db_cpu_limit": 2.0, "db_memory_mb": 1024.0, "db_memory_limit_mb": 2048.0, "redis_memory_mb": 128.0,
			},
			secrets: []any{object{"name": "PASSWORD", "value": "open-sesame"}, object{"name": "N_JOBS_PER_WORKER", "value": "3"}},
			env:     map[string]string{"PASSWORD": "open-sesame", "N_JOBS_PER_WORKER": "3", "PLATFORM_TRACING_V2": "false", "VENDOR_TRACING_V2": "false"},
		},
		"what-is-given-counts": {
			sent: object{"cpu": 1, "cpu_limit": 1, "memory_mb": 100, "memory_limit_mb": nil, "queue_cpu": 2, "queue_memory_mb": 50},
			deployed: object{
				"cpu": 1.0, "cpu_limit": 1.0, "memory_mb": 100.0, "memory_limit_mb": 200.0, "queue_cpu": 2.0, "queue_cpu_limit": 4.0,
				"queue_memory_mb": 50.0, "queue_memory_limit_mb": 100.0,
			},
			secrets: []any{object{"name": "PLATFORM_API_KEY", "value": "key-of-traces"}},
			env:     map[string]string{"PLATFORM_API_KEY": "key-of-traces", "PLATFORM_TRACING_V2": "true", "VENDOR_TRACING_V2": "true"},
		},
	} {
		path, listener := f.createListener(t, newListener(name, "agents"))
		body := with(with(fromImage(name), "source_config.listener_id", listener.id("id")), "source_config.resource_spec", c.sent)
		body["secrets"] = c.secrets
		deploymentPath, d := f.create(t, body)
		if diff := cmp.Diff(plain(t, c.sent), plain(t, d.member("source_config", "resource_spec"))); diff != "" {
			t.Errorf("%s: shown (-sent +got):\n%s", name, diff)
		}
		release := f.release(t, path, "a")
		if diff := cmp.Diff(plain(t, c.deployed), plain(t, release["resource_spec"])); diff != "" {
			t.Errorf("%s: deployed (-want +got):\n%s", name, diff)
		}
		project := f.call(t, "GET", deploymentPath+"/tracing-project", nil)
		wantStatus(t, project, http.StatusOK)
		want := map[string]string{
			"PLATFORM_PROJECT": name, "VENDOR_PROJECT": name, "PLATFORM_HOST_PROJECT_NAME": name, "PLATFORM_HOST_PROJECT_ID": project.id("id"),
			"PLATFORM_DEPLOYMENT_NAME": name, "PLATFORM_HOST_REVISION_ID": d.id("latest_revision_id"), "PLATFORM_TENANT_ID": f.own.workspace,
		}
		env, _ := release["env"].(object)
		maps.Copy(want, c.env)
		for variable, value := range want {
			if env[variable] != value {
				t.Errorf("%s: %s is %v, want %s", name, variable, env[variable], value)
			}
		}
	}
}

// TestSecretsThatAClusterHas follows references from the request to the listener that must
// resolve them.
func TestSecretsThatAClusterHas(t *testing.T) {
	t.Parallel()
	rule(t, secretsOutside)
	rule(t, referencesMade)
	f := setUpRollouts(t)
	listenerPath, listener := f.createListener(t, newListener("cluster", "agents"))
	one, two := object{"name": "ONE", "secret_name": "team.keys", "secret_key": "one_1"}, object{"name": "TWO", "secret_name": "team.keys", "secret_key": ".two"}
	body := with(fromImage("weather"), "source_config.listener_id", listener.id("id"))
	body["secrets"] = []any{object{"name": "PLAIN", "value": "x"}}
	const elsewhere = `secret_references[0].secret_name: the workspace has no secret "team.keys".`
	for _, refused := range []object{fromGit("here"), fromImage("here")} {
		wantDetail(t, f.call(t, "POST", "/v2/deployments", with(refused, "secret_references", []any{one})), http.StatusBadRequest, elsewhere)
		path, created := f.create(t, with(with(refused, "secret_references", []any{}), "name", refused["source"]))
		if _, shown := created.body.(object)["secret_references"]; shown {
			t.Errorf("got %s", created.text)
		}
		wantDetail(t, f.call(t, "PATCH", path, object{"secret_references": []any{one}}), http.StatusBadRequest, elsewhere)
	}
	for member, value := range map[string]any{"name": "9", "secret_name": "Team", "secret_key": "a/b"} {
		if got := problems(t, f.call(t, "POST", "/v2/deployments", with(body, "secret_references", []any{with(one, member, value)}))); len(got) != 1 {
			t.Errorf("%s: got %v", member, got)
		}
		got := problems(t, f.call(t, "POST", "/v2/deployments", with(body, "secret_references", []any{omit(one, member)})))
		if diff := cmp.Diff([]problem{{"body.secret_references.0." + member, "missing"}}, got); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", member, diff)
		}
	}
	for name, detail := range map[string]string{
		"PLAIN": "secret_references[1].name PLAIN is given twice.", "ONE": "secret_references[1].name ONE is given twice.",
		"DATABASE_URI": "secret_references[1].name DATABASE_URI is set by the platform.",
	} {
		wantDetail(t, f.call(t, "POST", "/v2/deployments", with(body, "secret_references", []any{one, with(two, "name", name)})), http.StatusBadRequest, detail)
	}
	path, created := f.create(t, with(body, "secret_references", []any{one, two}))
	first := created.id("latest_revision_id")
	wantReferences := func(shown response, want ...any) {
		t.Helper()
		wantStatus(t, shown, http.StatusOK)
		all, _ := shown.member("secret_references").([]any)
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("secret_references (-want +got):\n%s", diff)
		}
	}
	wantReferences(f.call(t, "GET", path, nil), one, two)
	if diff := cmp.Diff([]any{one, two}, f.release(t, listenerPath, "a")["secret_references"]); diff != "" {
		t.Errorf("the listener's (-want +got):\n%s", diff)
	}
	f.makeHealthy(t, listenerPath, path, first)
	for _, kept := range []object{{}, {"secret_references": nil}} {
		if same := f.call(t, "PATCH", path, kept); same.id("latest_revision_id") != first {
			t.Errorf("%v made a revision", kept)
		}
	}
	wantDetail(t, f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "TWO", "value": "x"}}}), http.StatusBadRequest, "secret_references[1].name TWO is given twice.")
	wantDetail(t, f.call(t, "PATCH", path, object{"secret_references": []any{with(one, "name", "PLAIN")}}), http.StatusBadRequest,
		"secret_references[0].name PLAIN is given twice.")
	removed := f.call(t, "PATCH", path, object{"secret_references": []any{}})
	if wantReferences(removed); removed.id("latest_revision_id") == first {
		t.Error("to remove them made no revision")
	}
	wantReferences(f.call(t, "POST", path+"/revisions/"+first+"/redeploy", nil), one, two)
}

// omit returns a body that lacks a member.
func omit(body object, member string) object {
	rest := maps.Clone(body)
	delete(rest, member)
	return rest
}

// makeHealthy has a listener report its release healthy, and waits until the release serves.
func (f *fixture) makeHealthy(t *testing.T, listenerPath, path, revision string) {
	t.Helper()
	claim := f.call(t, "POST", listenerPath+"/claim", object{"holder": "a", "wait": 0})
	listed := f.call(t, "POST", listenerPath+"/releases", object{"session": claim.member("session")})
	wantStatus(t, listed, http.StatusOK)
	s := &listenerStage{fixture: f, path: listenerPath, session: claim.member("session"), work: listed.member("resources").([]any)[0].(object)}
	wantStatus(t, f.call(t, "POST", listenerPath+"/report", s.report(1, "healthy", "url", "https://agents.test/a")), http.StatusNoContent)
	if got := f.await(t, path, revision); got != "DEPLOYED" {
		t.Fatalf("the revision is %s", got)
	}
}
