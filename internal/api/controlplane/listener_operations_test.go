package controlplane_test

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// newListener is a valid request to create a listener.
func newListener(computeID string, namespaces ...string) object {
	return object{"compute_type": "k8s", "compute_id": computeID, "compute_config": object{"k8s_namespaces": namespaces}}
}

// listenerStage holds the resources for the tests of operations: a listener, a session of it,
// and a release that was ordered and fetched.
type listenerStage struct {
	*fixture
	listener string
	path     string
	session  any
	work     object
}

// createListener creates a listener of the own workspace and returns its path.
func (f *fixture) createListener(t *testing.T, body object) (path string, created response) {
	t.Helper()
	created = f.call(t, "POST", "/v2/listeners", body)
	wantStatus(t, created, http.StatusCreated)
	return "/v2/listeners/" + created.id("id"), created
}

func (f *fixture) listenerStage(t *testing.T) *listenerStage {
	t.Helper()
	path, created := f.createListener(t, newListener("cluster", "agents"))
	s := &listenerStage{fixture: f, listener: created.id("id"), path: path}
	f.order(t, s.listener)
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a", "wait": 0})
	wantStatus(t, claim, http.StatusOK)
	s.session, s.work = claim.member("session"), workOf(t, claim)[0]
	return s
}

// workOf is the work of a claim.
func workOf(t *testing.T, claim response) []object {
	t.Helper()
	wantStatus(t, claim, http.StatusOK)
	list, _ := claim.member("work").([]any)
	work := []object{}
	for _, w := range list {
		work = append(work, w.(object))
	}
	return work
}

// order has a release run at a listener, as a rollout does.
func (f *fixture) order(t *testing.T, listenerID string) compute.Release {
	t.Helper()
	_, created := f.create(t, fromImage("of-"+rand.Text()))
	r := compute.Release{
		Ref:       compute.Ref{Workspace: f.own.workspace, Deployment: created.id("id"), Revision: created.id("latest_revision_id")},
		Artifact:  build.Artifact{Image: "registry.test/agent:1"},
		Env:       map[string]string{"PASSWORD": "open-sesame"},
		Placement: compute.Placement{Listener: listenerID, Namespace: "agents"}, ResourceSpec: []byte(`{"cpu":1,"cpu_limit":2}`),
	}
	check.Must(t, f.listeners.Target(nil).Apply(t.Context(), r))
	return r
}

// report is a report about the stage's work.
func (s *listenerStage) report(number int, state string, more ...string) object {
	body := object{
		"session": s.session, "deployment_id": s.work["deployment_id"], "revision_id": s.work["revision_id"], "order": s.work["order"],
		"number": number, "state": state,
	}
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	return body
}

// output is a request with output of the agent of the stage's work.
func (s *listenerStage) output(lines ...string) object {
	return object{"session": s.session, "deployment_id": s.work["deployment_id"], "revision_id": s.work["revision_id"], "lines": lines}
}

// listenerOperation describes how the tests exercise one operation.
type listenerOperation struct {
	body   func(s *listenerStage) any
	status int
	shape  valueShape
	verb   workspace.Verb
}

func inSession(s *listenerStage) any { return object{"session": s.session} }

func noBody(*listenerStage) any { return nil }

var (
	listenerShape = members(map[string]valueShape{
		"id": uuid, "version": orNull(text), "compute_type": oneOf("k8s"), "compute_id": text,
		"compute_config": members(map[string]valueShape{"k8s_namespaces": orNull(listOf(text))}),
		"created_at":     dateTime, "updated_at": dateTime, "last_seen_at": orNull(dateTime), "online": boolean,
	})
	listenerDiagnosticsShape = members(map[string]valueShape{
		"listener_id": uuid, "checked_at": dateTime, "online": boolean, "last_seen_at": orNull(dateTime), "session": orNull(listenerSessionShape), "version": orNull(text),
		"k8s_namespaces": listOf(text),
		"orders": listOf(members(map[string]valueShape{
			"deployment_id": uuid, "revision_id": uuid, "order": uuid, "verb": oneOf("apply remove"), "ordered_at": dateTime, "fetched": boolean,
		})),
		"failures": listOf(members(map[string]valueShape{
			"deployment_id": uuid, "revision_id": uuid, "namespace": text, "reason": text, "message": text, "reported_at": dateTime,
		})),
		"misplaced": listOf(members(map[string]valueShape{"deployment_id": uuid, "k8s_namespace": text})),
		"checks":    listOf(members(map[string]valueShape{"code": text, "ok": boolean, "message": text})),
	})
	listenerSessionShape = members(map[string]valueShape{"holder": text, "epoch": integer, "expires_at": dateTime})
	listenerWorkShape    = members(map[string]valueShape{
		"deployment_id": uuid, "revision_id": uuid, "order": uuid, "verb": oneOf("apply remove"), "namespace": text, "labels": mapOf(text),
		"release": orNull(members(map[string]valueShape{"image": text, "env": mapOf(text), "resource_spec": orNull(anyObject)})),
	})
)

// listenerOperations has an entry for every operation of listeners.
var listenerOperations = map[string]listenerOperation{
	"GET /v2/listeners": {noBody, http.StatusOK, pageOf(listenerShape), workspace.Read},
	"POST /v2/listeners": {
		func(*listenerStage) any { return newListener("another") }, http.StatusCreated, listenerShape, workspace.Create,
	},
	"GET /v2/listeners/{listener_id}": {noBody, http.StatusOK, listenerShape, workspace.Read},
	"PATCH /v2/listeners/{listener_id}": {
		func(*listenerStage) any { return object{"version": "2"} }, http.StatusOK, listenerShape, workspace.Update,
	},
	"DELETE /v2/listeners/{listener_id}": {noBody, http.StatusNoContent, empty, workspace.Delete},
	"POST /v2/listeners/{listener_id}/claim": {
		func(*listenerStage) any { return object{"holder": "a", "wait": 0} }, http.StatusOK,
		members(map[string]valueShape{"session": listenerSessionShape, "work": listOf(listenerWorkShape)}), workspace.Update,
	},
	"POST /v2/listeners/{listener_id}/heartbeat": {inSession, http.StatusOK, listenerSessionShape, workspace.Update},
	"POST /v2/listeners/{listener_id}/report": {
		func(s *listenerStage) any { return s.report(1, "healthy", "url", "https://agents.test/a") }, http.StatusNoContent, empty, workspace.Update,
	},
	"POST /v2/listeners/{listener_id}/logs": {
		func(s *listenerStage) any { return s.output("listening") }, http.StatusNoContent, empty, workspace.Update,
	},
	"POST /v2/listeners/{listener_id}/releases": {
		inSession, http.StatusOK, members(map[string]valueShape{"resources": listOf(listenerWorkShape)}), workspace.Update,
	},
	"GET /v2/listeners/{listener_id}/diagnostics": {noBody, http.StatusOK, listenerDiagnosticsShape, workspace.Update},
	"POST /v2/listeners/{listener_id}/leave":      {inSession, http.StatusNoContent, empty, workspace.Update},
}

// at returns the method and path of an operation on the stage.
func (s *listenerStage) at(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	return method, strings.Replace(path, "{listener_id}", s.listener, 1)
}

func TestEveryOperationOfListenersSucceeds(t *testing.T) {
	t.Parallel()
	rule(t, "Every operation answers with its success status in the shape of the interface, at the root and under `/api-host`.")
	for name, o := range listenerOperations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				s := setUp(t).listenerStage(t)
				if name == "DELETE /v2/listeners/{listener_id}" {
					s.quiet(t)
				}
				method, path := s.at(name)
				answer := s.call(t, method, base+path, o.body(s))
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

// quiet ends the stage's session, because an online listener is not deleted before it has
// removed its releases.
func (s *listenerStage) quiet(t *testing.T) {
	t.Helper()
	wantStatus(t, s.call(t, "POST", s.path+"/leave", object{"session": s.session}), http.StatusNoContent)
}

func TestRolesOfListeners(t *testing.T) {
	t.Parallel()
	rule(t, "Roles: what a role lacks is a 403.")
	rule(t, "Listeners: to speak for one takes the permission to update listeners, as it shows secrets.")
	may := map[workspace.Role][]workspace.Verb{
		workspace.Admin:  {workspace.Read, workspace.Create, workspace.Update, workspace.Delete},
		workspace.Editor: {workspace.Read, workspace.Create, workspace.Update}, workspace.Viewer: {workspace.Read},
	}
	for role, allowed := range may {
		for name, o := range listenerOperations {
			t.Run(string(role)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := setUp(t).listenerStage(t)
				s.quiet(t)
				method, path := s.at(name)
				body := o.body(s)
				if strings.HasSuffix(path, "/report") || strings.HasSuffix(path, "/logs") || strings.HasSuffix(path, "/releases") || strings.HasSuffix(path, "/heartbeat") {
					claim := s.call(t, "POST", s.path+"/claim", object{"holder": "b", "wait": 0})
					s.session = claim.member("session")
					body = o.body(s)
				}
				answer := s.send(t, method, path, body, s.issue(t, role).headers())
				if slices.Contains(allowed, o.verb) {
					wantStatus(t, answer, o.status)
					return
				}
				wantDetail(t, answer, http.StatusForbidden,
					`The credentials do not allow this: the role "`+string(role)+`" lacks the permission listeners:`+string(o.verb)+".")
			})
		}
	}
}

// TestListenersOfOthers calls every operation without credentials, for a listener of another
// workspace, and for a listener that does not exist.
func TestListenersOfOthers(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	s := setUp(t).listenerStage(t)
	for name, o := range listenerOperations {
		method, path := s.at(name)
		wantDetail(t, s.send(t, method, path, o.body(s), nil), http.StatusUnauthorized, "The header X-Api-Key is missing.")
		wantDetail(t, s.send(t, method, path, "{", map[string]string{"X-Api-Key": "slw_guess"}), http.StatusUnauthorized, "The API key is not valid.")
		if !strings.Contains(name, "{listener_id}") {
			continue
		}
		wantDetail(t, s.send(t, method, path, o.body(s), s.other.headers()), http.StatusNotFound, "Listener ID "+s.listener+" not found.")
		unknown := strings.Replace(path, s.listener, unknownID, 1)
		wantDetail(t, s.call(t, method, unknown, o.body(s)), http.StatusNotFound, "Listener ID "+unknownID+" not found.")
		malformed := s.call(t, method, strings.Replace(path, s.listener, "x", 1), o.body(s))
		if diff := cmp.Diff([]problem{{"path.listener_id", "uuid_parsing"}}, problems(t, malformed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	list := s.send(t, "GET", "/v2/listeners", nil, s.other.headers())
	if diff := cmp.Diff([]any{}, list.member("resources")); diff != "" {
		t.Errorf("another workspace lists %s", list.text)
	}
	if again := s.call(t, "POST", s.path+"/heartbeat", object{"session": s.session}); again.StatusCode != http.StatusOK {
		t.Errorf("somebody has ended the session: %s", again.text)
	}
}
