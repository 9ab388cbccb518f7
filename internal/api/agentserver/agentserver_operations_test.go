package agentserver_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/test/check"
)

// operation says how the tests exercise one operation of the contract.
type operation struct {
	// public operations take no credentials.
	public bool
	// located operations return the path of the run; resumable operations also return the path
	// where a client can continue their answer.
	located, resumable bool
	// idle operations need a thread whose runs are over, reads operations only read, although
	// they have a body.
	idle, reads bool
	// stateless operations have no thread in their path; endless operations stream until their
	// client goes. An exempt operation has a test of its own and is left out of the tests of
	// good answers.
	stateless, endless, exempt bool
	// elsewhere is the name of the test that sends the id of a thread that does not exist, if
	// the answer is not a 404.
	elsewhere string
	// status is the status of the answer on a run that has ended; 200 unless set.
	status int
	// gone operations remove the object that they are about, query is the query of each
	// request.
	gone  bool
	query string
	body  any
}

// operations has an entry for every operation of the contract; TestEveryOperationIsExercised
// fails if an entry is missing.
var operations = map[string]operation{
	"GET /ok":                                            {public: true},
	"GET /info":                                          {},
	"POST /threads":                                      {body: object{"metadata": object{"a": 1}}},
	"GET /threads/{thread_id}":                           {},
	"GET /threads/{thread_id}/state":                     {},
	"POST /threads/{thread_id}/state":                    {body: object{"values": object{"a": 1}}, idle: true},
	"POST /threads/{thread_id}/state/checkpoint":         {body: object{"checkpoint": object{"checkpoint_map": nil}}, reads: true},
	"GET /threads/{thread_id}/state/{checkpoint_id}":     {},
	"GET /threads/{thread_id}/history":                   {},
	"POST /threads/{thread_id}/history":                  {body: object{"limit": 3}, reads: true},
	"POST /threads/{thread_id}/copy":                     {idle: true},
	"GET /threads/{thread_id}/runs":                      {},
	"POST /threads/{thread_id}/runs":                     {body: hi(), located: true},
	"POST /threads/{thread_id}/runs/wait":                {body: hi(), located: true, resumable: true},
	"POST /threads/{thread_id}/runs/stream":              {body: hi(), located: true, resumable: true},
	"GET /threads/{thread_id}/runs/{run_id}":             {},
	"DELETE /threads/{thread_id}/runs/{run_id}":          {exempt: true},
	"POST /threads/{thread_id}/runs/{run_id}/cancel":     {status: http.StatusNotFound},
	"GET /threads/{thread_id}/runs/{run_id}/explanation": {},
	"GET /threads/{thread_id}/stream":                    {endless: true, exempt: true},
	"POST /threads/{thread_id}/commands":                 {body: object{"id": 1, "method": "state.get", "params": object{"namespace": []any{}}}, elsewhere: "TestStateCommands"},
	"GET /threads/{thread_id}/stream/events":             {status: http.StatusBadRequest, exempt: true, elsewhere: "TestCommandsAndEventsOverASocket"},
	"POST /threads/{thread_id}/stream/events":            {body: object{"channels": []string{"lifecycle"}}, reads: true, endless: true, exempt: true, elsewhere: "TestEventsOfARun"},
	"POST /runs":                                  {body: hi(), located: true, stateless: true},
	"POST /runs/wait":                             {body: hi(), located: true, resumable: true, stateless: true},
	"POST /runs/stream":                           {body: hi(), located: true, resumable: true, stateless: true},
	"POST /runs/batch":                            {body: []any{hi()}},
	"POST /runs/cancel":                           {body: object{"thread_id": unknownID, "run_ids": []any{unknownID}}, status: http.StatusNotFound},
	"GET /runs/{run_id}/{part}":                   {status: http.StatusNotFound},
	"GET /threads/{thread_id}/runs/{run_id}/join": {located: true, resumable: true},
	"GET /threads/{thread_id}/runs/{run_id}/stream": {
		located: true, resumable: true,
	},
	"PATCH /threads/{thread_id}":                           {body: object{"metadata": object{"b": 2}}},
	"DELETE /threads/{thread_id}":                          {status: http.StatusNoContent, gone: true},
	"POST /threads/search":                                 {body: object{"limit": 3}, reads: true},
	"POST /threads/count":                                  {body: object{"status": "idle"}, reads: true},
	"POST /threads/prune":                                  {body: object{"thread_ids": []any{}}},
	"POST /assistants":                                     {body: object{"graph_id": "agent"}},
	"POST /assistants/search":                              {body: object{"graph_id": "agent"}, reads: true},
	"POST /assistants/count":                               {body: object{}, reads: true},
	"GET /assistants/{assistant_id}":                       {},
	"PATCH /assistants/{assistant_id}":                     {body: object{"name": "Ann"}},
	"DELETE /assistants/{assistant_id}":                    {status: http.StatusNoContent, gone: true},
	"POST /assistants/{assistant_id}/versions":             {body: object{}, reads: true},
	"POST /assistants/{assistant_id}/latest":               {body: object{"version": 1}},
	"GET /assistants/{assistant_id}/schemas":               {},
	"GET /assistants/{assistant_id}/graph":                 {},
	"GET /assistants/{assistant_id}/subgraphs":             {},
	"GET /assistants/{assistant_id}/subgraphs/{namespace}": {},
	"GET /store/items":                                     {query: "?key=k&namespace=a.b"},
	"PUT /store/items":                                     {body: object{"namespace": []string{"a", "b"}, "key": "k", "value": object{}}, status: http.StatusNoContent},
	"DELETE /store/items":                                  {body: object{"namespace": []string{"a"}, "key": "none"}, status: http.StatusNoContent},
	"POST /store/items/search":                             {body: object{"namespace_prefix": []string{"a"}}, reads: true},
	"POST /store/namespaces":                               {body: object{}, reads: true},
	"POST /runs/crons":                                     {body: yearly()},
	"POST /threads/{thread_id}/runs/crons":                 {body: yearly()},
	"POST /runs/crons/search":                              {body: object{}, reads: true},
	"POST /runs/crons/count":                               {body: object{}, reads: true},
	"GET /runs/crons/{cron_id}":                            {},
	"PATCH /runs/crons/{cron_id}":                          {body: object{"enabled": true}},
	"DELETE /runs/crons/{cron_id}":                         {status: http.StatusNoContent, gone: true},
	"GET /metrics":                                         {},
	"POST /a2a/{assistant_id}":                             {body: rpc("tasks/get", object{"id": "x"}), reads: true},
	"GET /a2a/{assistant_id}/.well-known/agent-card.json":  {},
	"GET /.well-known/agent-card.json":                     {query: "?assistant_id={assistant_id}"},
	"POST /mcp":                                            {body: object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, reads: true},
}

// request returns the method and path of an operation on a run, given by its path.
func request(name, run string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	parts := strings.Split(run, "/")
	return method, strings.NewReplacer("{thread_id}", parts[2], "{run_id}", parts[4], "{part}", "join").Replace(path)
}

// send sends the operation's request with a key; "" sends no key.
func (o operation) send(t *testing.T, f *fixture, method, path, key string) response {
	t.Helper()
	if of, ok := strings.CutSuffix(path, "/{checkpoint_id}"); ok { // of the thread's newest state
		newest := f.send(t, "GET", of, nil, map[string]string{auth.HeaderKey: f.key})
		path = of + "/" + cmp.Or(newest.string("checkpoint", "checkpoint_id"), unknownID)
	}
	if o.idle {
		f.settle(t, path[:strings.LastIndexByte(path, '/')])
	}
	path = f.fill(t, path)
	path += f.fill(t, o.query)
	headers := map[string]string{}
	if key != "" {
		headers[auth.HeaderKey] = key
	}
	return f.send(t, method, path, o.body, headers)
}

// good returns the status of the operation's answer on a run that has ended.
func (o operation) good() int { return cmp.Or(o.status, http.StatusOK) }

// yearly is a cron that does not fire during a test.
func yearly() object {
	return object{"assistant_id": "agent", "schedule": "@yearly", "input": object{"messages": []any{message("human", "tick", "Tick")}}}
}

// fill replaces a path's parameters by existing objects: an assistant, a cron and a subgraph
// in the fixture's workspace, made for the request.
func (f *fixture) fill(t *testing.T, path string) string {
	t.Helper()
	path = strings.Replace(path, "{namespace}", "inner", 1)
	if strings.Contains(path, "{assistant_id}") {
		made := f.call(t, "POST", "/assistants", object{"graph_id": "agent"})
		path = strings.Replace(path, "{assistant_id}", cmp.Or(made.string("assistant_id"), unknownID), 1)
	}
	if strings.Contains(path, "{cron_id}") {
		made := f.call(t, "POST", "/runs/crons", yearly())
		path = strings.Replace(path, "{cron_id}", cmp.Or(made.string("cron_id"), unknownID), 1)
	}
	if strings.HasSuffix(path, "/store/items") {
		f.call(t, "PUT", "/store/items", object{"namespace": []string{"a", "b"}, "key": "k", "value": object{"v": 1}})
	}
	return path
}

// settle waits until the runs of a thread are over.
func (f *fixture) settle(t *testing.T, thread string) {
	t.Helper()
	listed, _ := f.send(t, "GET", thread+"/runs?limit=1", nil, map[string]string{auth.HeaderKey: f.key}).body.([]any)
	for _, newest := range listed {
		f.send(t, "GET", thread+"/runs/"+newest.(map[string]any)["run_id"].(string)+"/join", nil, map[string]string{auth.HeaderKey: f.key})
	}
}

// document is the contract as the server publishes it.
func (f *fixture) document(t *testing.T) response {
	t.Helper()
	document := f.send(t, "GET", f.path("/openapi.json"), nil, nil)
	wantStatus(t, document, http.StatusOK)
	return document
}

func TestEveryOperationIsExercised(t *testing.T) {
	t.Parallel()
	var got []string
	paths, _ := setUp(t, nil).document(t).member("paths").(map[string]any)
	for path, item := range paths {
		for name := range item.(map[string]any) {
			if name != "parameters" {
				got = append(got, strings.ToUpper(name)+" "+path)
			}
		}
	}
	slices.Sort(got)
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(operations)), got); diff != "" {
		t.Errorf("operations (-exercised +in the contract):\n%s", diff)
	}
}

// TestEveryOperationAnswersInTheShapeOfTheContract checks each answer against the schema that the
// published contract has for it.
func TestEveryOperationAnswersInTheShapeOfTheContract(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	document := f.document(t)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	check.Must(t, compiler.AddResource("test:///contract", document.body))
	thread := f.newThread(t)
	run := f.finish(t, thread, hi())
	for name, o := range operations {
		if o.exempt {
			continue
		}
		method, path := request(name, run)
		if o.gone {
			_, path = request(name, f.newThread(t)+"/runs/"+unknownID)
		}
		answer := o.send(t, f, method, f.path(path), f.key)
		wantStatus(t, answer, o.good())
		checkLocations(t, name, o, thread, answer)
		if o.status == http.StatusNoContent {
			continue
		}
		_, template, _ := strings.Cut(name, " ")
		definition := []string{"paths", template, strings.ToLower(method), "responses", strconv.Itoa(o.good())}
		if shared := document.string(append(definition, "$ref")...); shared != "" {
			definition = strings.Split(strings.TrimPrefix(shared, "#/"), "/")
		}
		content, _ := document.member(append(definition, "content")...).(map[string]any)
		media := answer.Header.Get("Content-Type")
		if content[media] == nil || (len(content) != 1 && !slices.Contains([]string{"/metrics", "/mcp", "/a2a/{assistant_id}"}, template)) {
			t.Errorf("%s: Content-Type is %q, the contract has %v", name, media, slices.Sorted(maps.Keys(content)))
			continue
		}
		if media == "text/event-stream" {
			eventsOf(t, answer)
		}
		if media != "application/json" {
			continue
		}
		schema, err := compiler.Compile("test:///contract#/" + pointer(append(definition, "content", media, "schema")))
		check.Must(t, err)
		if err := schema.Validate(answer.body); err != nil {
			t.Errorf("%s answered %s: %v", name, answer.text, err)
		}
	}
}

func pointer(path []string) string {
	escaped := make([]string, len(path))
	for i, name := range path {
		escaped[i] = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
	}
	return strings.Join(escaped, "/")
}

func checkLocations(t *testing.T, name string, o operation, thread string, answer response) {
	t.Helper()
	content, location := answer.Header.Get("Content-Location"), answer.Header.Get("Location")
	if o.stateless {
		thread = ""
	}
	if is := strings.HasPrefix(content, thread+"/runs/") && len(content) == len(thread+"/runs/"+unknownID); is != o.located {
		t.Errorf("%s: Content-Location is %q", name, content)
	}
	suffix := "/stream"
	if strings.HasSuffix(name, "join") || strings.HasSuffix(name, "wait") {
		suffix = "/join"
	}
	want := ""
	if o.resumable {
		want = content + suffix
	}
	if location != want {
		t.Errorf("%s: Location is %q, want %q", name, location, want)
	}
}

// TestAttackStrangersAtEveryOperation sends requests without a key, with an invalid key, and
// with a valid key of another workspace. It also sends each body malformed: an unknown caller
// learns nothing about that.
func TestAttackStrangersAtEveryOperation(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	run := f.finish(t, thread, hi())
	before := f.call(t, "GET", thread+"/runs", nil)
	for name, o := range operations {
		if o.public {
			continue
		}
		method, path := request(name, run)
		for who, c := range map[string]struct {
			key    string
			status int
			detail string
		}{
			"nobody":    {"", http.StatusUnauthorized, "The header X-Api-Key is missing."},
			"a bad key": {"slw_guess", http.StatusUnauthorized, "The API key is not valid."},
			"a stranger": {
				f.stranger, http.StatusNotFound, "Deployment ID " + f.deployment.Deployment + " not found.",
			},
		} {
			wantDetail(t, o.send(t, f, method, f.path(path), c.key), c.status, c.detail)
			if o.body != nil {
				malformed := f.send(t, method, f.path(path), "{", map[string]string{auth.HeaderKey: c.key})
				wantDetail(t, malformed, c.status, c.detail)
			}
			if t.Failed() {
				t.Fatalf("%s was %s", name, who)
			}
		}
	}
	after := f.call(t, "GET", thread+"/runs", nil)
	if diff := gocmp.Diff(before.body, after.body); diff != "" {
		t.Errorf("a refused request changed something (-before +after):\n%s", diff)
	}
}

func TestPublicOperationsTakeNoCredentials(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, key := range []string{"", "guess"} {
		answer := f.send(t, "GET", f.path("/ok"), nil, map[string]string{auth.HeaderKey: key})
		if diff := gocmp.Diff(any(object{"ok": true}), answer.body); diff != "" {
			t.Errorf("ok (-want +got):\n%s", diff)
		}
	}
}

// TestWhatIsNotThereIsNotFound sends ids that name no object, and the id of a run with the
// wrong thread.
func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	run := f.finish(t, f.newThread(t), hi())
	other := strings.TrimPrefix(f.newThread(t), "/threads/")
	parts := strings.Split(run, "/")
	const noThread, noRun = "Thread with ID " + unknownID + " not found.", "Run with ID "
	for name, o := range operations {
		if !strings.Contains(name, "{thread_id}") || o.elsewhere != "" {
			continue
		}
		ask := func(thread, run string) response {
			method, path := request(name, "/threads/"+thread+"/runs/"+run)
			return o.send(t, f, method, f.path(path), f.key)
		}
		if !strings.Contains(name, "{run_id}") {
			wantDetail(t, ask(unknownID, unknownID), http.StatusNotFound, noThread)
			continue
		}
		wantDetail(t, ask(parts[2], unknownID), http.StatusNotFound, noRun+unknownID+" not found.")
		wantDetail(t, ask(other, parts[4]), http.StatusNotFound, noRun+parts[4]+" not found.")
		wantDetail(t, ask(unknownID, parts[4]), http.StatusNotFound, noRun+parts[4]+" not found.")
		if got := ask(parts[2], unknownID).Header; got.Get("Location") != "" || got.Get("Content-Location") != "" {
			t.Errorf("%s: the refusal tells of a run: %v", name, got)
		}
	}
}

// TestDeploymentsThatAreNotThereAreNotFound calls every operation of a deployment that is
// unknown, has an invalid id, or is deleted.
func TestDeploymentsThatAreNotThereAreNotFound(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	run := f.finish(t, f.newThread(t), hi())
	check.Must(t, f.deployments.Delete(t.Context(), f.deployment, deployment.Deletion{}))
	for _, missing := range []string{unknownID, "x", f.deployment.Deployment} {
		for name, o := range operations {
			if o.public {
				continue
			}
			method, path := request(name, run)
			answer := o.send(t, f, method, "/d/"+missing+path, f.key)
			wantDetail(t, answer, http.StatusNotFound, "Deployment ID "+missing+" not found.")
		}
	}
}
