package agentserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// socket is a client's WebSocket at a thread.
type socket struct {
	*websocket.Conn

	sent int
	// events are the events that came before an answer.
	events []shownEvent
}

// dial opens a WebSocket, and also returns the server's HTTP answer.
func (f *fixture) dial(t *testing.T, thread string, headers map[string]string) (*socket, *http.Response) {
	t.Helper()
	header := http.Header{auth.HeaderKey: {f.key}}
	for name, value := range headers {
		header.Set(name, value)
	}
	conn, answer, err := websocket.Dial(t.Context(), f.URL+f.path(thread+"/stream/events"), &websocket.DialOptions{HTTPHeader: header, HTTPClient: f.Client()})
	if err != nil {
		return nil, answer
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{Conn: conn}, answer
}

// talk opens a WebSocket.
func (f *fixture) talk(t *testing.T, thread string) *socket {
	t.Helper()
	s, answer := f.dial(t, thread, nil)
	if s == nil {
		t.Fatalf("the WebSocket is answered with %v", answer)
	}
	return s
}

func (s *socket) send(t *testing.T, text string) {
	t.Helper()
	check.Must(t, s.Write(t.Context(), websocket.MessageText, []byte(text)))
}

// next returns the next message: an event, or an answer.
func (s *socket) next(t *testing.T) (event *shownEvent, answer response) {
	t.Helper()
	_, text, err := s.Read(t.Context())
	check.Must(t, err)
	var e shownEvent
	check.Must(t, json.Unmarshal(text, &e))
	if e.Type == "event" {
		return &e, answer
	}
	answer.text = text
	check.Must(t, json.Unmarshal(text, &answer.body))
	return nil, answer
}

// command sends a command and waits for its answer.
func (s *socket) command(t *testing.T, method string, params object) response {
	t.Helper()
	s.sent++
	text, err := json.Marshal(object{"id": s.sent, "method": method, "params": params})
	check.Must(t, err)
	s.send(t, string(text))
	for {
		event, answer := s.next(t)
		if event == nil {
			if answer.member("id") != float64(s.sent) {
				t.Fatalf("command %d is answered with %s", s.sent, answer.text)
			}
			return answer
		}
		s.events = append(s.events, *event)
	}
}

// does sends a command that succeeds.
func (s *socket) does(t *testing.T, method string, params object) response {
	t.Helper()
	answer := s.command(t, method, params)
	if answer.string("type") != "success" {
		t.Fatalf("%s: %s", method, answer.text)
	}
	return answer
}

// runs reads events until some runs have ended.
func (s *socket) runs(t *testing.T, count int) []shownEvent {
	t.Helper()
	var all []shownEvent
	for {
		for i, e := range s.events {
			if root := e.root(); root != "" && root != "running" {
				if count--; count == 0 {
					all = append(all, s.events[:i+1]...)
					s.events = slices.Clone(s.events[i+1:])
					return all
				}
			}
		}
		all, s.events = append(all, s.events...), nil
		if event, answer := s.next(t); event != nil {
			s.events = append(s.events, *event)
		} else {
			t.Fatalf("an answer came: %s", answer.text)
		}
	}
}

// apart serves the same deployment at another server. Its requests take the memory for reads
// from a budget. Pages of the given origins may call it; if there are none, pages of all
// origins. stop ends its requests.
func (f *fixture) apart(t *testing.T, reads *budget.Budget, origins ...string) (_ *fixture, stop context.CancelCauseFunc) {
	t.Helper()
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	mux.Reads = reads
	check.Must(t, agentserver.Register(mux, agentserver.Config{
		Deployments: f.deployments, Assistants: assistant.NewStore(f.table, clock.System), Threads: f.threads, Runs: f.runs,
		Authenticator: auth.New(f.keys), Version: version, WebSockets: true, Origins: origins,
	}))
	requests, stop := context.WithCancelCause(context.Background())
	apart := *f
	apart.Server = httptest.NewUnstartedServer(mux)
	apart.Config.BaseContext = func(net.Listener) context.Context { return requests }
	// What a client does not read is soon more than the kernel keeps.
	apart.Config.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		check.Must(t, connection.(*net.TCPConn).SetWriteBuffer(64<<10))
		return ctx
	}
	apart.Start()
	t.Cleanup(func() { stop(nil); apart.Close() })
	return &apart, stop
}

// closed waits for the end of the WebSocket, and returns its code.
func (s *socket) closed(t *testing.T) websocket.StatusCode {
	t.Helper()
	for {
		if _, _, err := s.Read(t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// TestCommandsAndEventsOverASocket checks that they are the same as over HTTP, and that two
// clients get the same events.
func TestCommandsAndEventsOverASocket(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	one, two := f.talk(t, thread), f.talk(t, thread)
	wantRefusal(t, one.command(t, "agent.getTree", object{}), "no_such_run")
	subscribed := one.does(t, "subscription.subscribe", object{"channels": allChannels})
	two.does(t, "subscription.subscribe", object{"channels": allChannels, "namespaces": [][]string{{}}, "depth": 1})
	id := one.does(t, "run.start", script(say("m1", "Hello"), add("model", "m1", "Hello"))).string("result", "run_id")
	seen, same := one.runs(t, 1), two.runs(t, 1)
	wantLines(t, "the lifecycle", lifecycles(seen), "running", "completed")
	wantLines(t, "the events of the other", eventLines(same), eventLines(seen)...)
	wantLines(t, "the events over HTTP", eventLines(f.watch(t, thread, object{"channels": allChannels}).runs(t, 1)), eventLines(seen)...)
	if seen[0].ID != "synth:"+id+":running" {
		t.Errorf("the first event is %s", seen[0].ID)
	}
	// With a number, only later events follow, and each subscription gets its own events.
	after := f.talk(t, thread)
	if after.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}, "since": seen[1].Seq}); len(after.events) > 0 {
		t.Errorf("%v comes before the answer to the subscription", after.events[0])
	}
	wantLines(t, "the lifecycle behind a number", lifecycles(after.runs(t, 1)), "completed")
	one.does(t, "subscription.unsubscribe", object{"subscription_id": subscribed.member("result", "subscription_id")})
	wantRefusal(t, one.command(t, "subscription.unsubscribe", object{"subscription_id": subscribed.member("result", "subscription_id")}), "no_such_subscription")
	one.does(t, "run.start", script(add("model", "m2", "Bye")))
	two.runs(t, 1)
	one.does(t, "state.get", object{"namespace": []any{}})
	if len(one.events) > 0 {
		t.Errorf("an event follows the end of its subscription: %v", one.events[0])
	}
}

// TestASocketSurvivesWhatItRefuses checks also that the socket gives the reason.
func TestASocketSurvivesWhatItRefuses(t *testing.T) {
	t.Parallel()
	f := setUpImpatient(t, nil, 20*time.Millisecond)
	s := f.talk(t, f.newThread(t))
	for text, id := range map[string]any{
		"what": nil, "[]": nil, `{"method":"run.start"}`: nil, `{"id":"x","method":"run.start"}`: nil, `{"id":-1,"method":"run.start"}`: -1.0,
	} {
		s.send(t, text)
		_, answer := s.next(t)
		shown, _ := answer.body.(object)
		if echoed, named := shown["id"]; !named || echoed != id {
			t.Errorf("%s is answered with the id %v", text, echoed)
		}
		wantRefusal(t, answer, "invalid_argument")
	}
	for _, params := range []object{{}, {"channels": []string{}}, {"channels": "lifecycle"}} {
		refused := s.command(t, "subscription.subscribe", params)
		if wantRefusal(t, refused, "invalid_argument"); !strings.Contains(refused.string("message"), "channels") {
			t.Errorf("%v: the refusal does not name the field: %s", params, refused.text)
		}
	}
	wantRefusal(t, s.command(t, "subscription.subscribe", object{"channels": []string{"weather"}}), "invalid_argument")
	wantRefusal(t, s.command(t, "subscription.reconnect", object{}), "not_supported")
	wantRefusal(t, s.command(t, "run.panic", object{}), "unknown_command")
	wantRefusal(t, s.command(t, "run.start", object{"assistant_id": "nobody"}), "invalid_argument")
	large := script(add("model", "m1", "Hello"))
	large["metadata"] = object{"a": strings.Repeat("x", 100_000)} // more than the head
	s.does(t, "run.start", large)
}

// TestWhatOpensNoSocket checks the status of requests that open no socket.
func TestWhatOpensNoSocket(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	wantStatus(t, f.call(t, "GET", thread+"/stream/events", nil), http.StatusBadRequest)
	for status, headers := range map[int]map[string]string{
		http.StatusUnauthorized: {auth.HeaderKey: "nobody"},
		http.StatusNotFound:     {auth.HeaderKey: f.stranger},
	} {
		if s, answer := f.dial(t, thread, headers); s != nil || answer.StatusCode != status {
			t.Errorf("%v is answered with %d, not %d", headers, answer.StatusCode, status)
		}
	}
	if s, answer := f.dial(t, "/threads/nobody", nil); s != nil || answer.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a thread whose id is none is answered with %d", answer.StatusCode)
	}
}

// TestAServerWithoutWebSockets checks that the server says so, and says what to do.
func TestAServerWithoutWebSockets(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	check.Must(t, agentserver.Register(mux, agentserver.Config{Deployments: f.deployments, Threads: f.threads, Runs: f.runs, Authenticator: auth.New(f.keys)}))
	apart := *f
	apart.Server = httptest.NewServer(mux)
	t.Cleanup(apart.Close)
	if flag := apart.call(t, "GET", "/info", nil).member("flags", "thread_streaming_websocket"); flag != false {
		t.Errorf("the flag is %v", flag)
	}
	thread := f.newThread(t)
	if s, answer := apart.dial(t, thread, nil); s != nil || answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a handshake is answered with %v", answer)
	}
	refused := apart.call(t, "GET", thread+"/stream/events", nil)
	if wantStatus(t, refused, http.StatusBadRequest); !strings.Contains(refused.string("detail"), "WebSocket. POST streams") {
		t.Errorf("got %s", refused.text)
	}
}

// TestAttackAPageOfAnotherOrigin checks that such a page opens no WebSocket if the server
// names origins.
func TestAttackAPageOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f, _ = f.apart(t, nil, "https://chat.example")
	for origin, status := range map[string]int{
		"https://evil.example": http.StatusForbidden, "http://chat.example": http.StatusForbidden, "https://chat.example.evil": http.StatusForbidden,
		"null": http.StatusForbidden, "https://chat.example": http.StatusSwitchingProtocols, f.URL: http.StatusSwitchingProtocols,
	} {
		if _, answer := f.dial(t, thread, map[string]string{"Origin": origin}); answer.StatusCode != status {
			t.Errorf("the origin %s is answered with %d, not %d", origin, answer.StatusCode, status)
		}
	}
}

// TestAttackAPageThatTheDeploymentKeepsOut checks that the rules in a configuration file count for
// WebSockets in place of the server's origins, whether they let in more pages or fewer.
func TestAttackAPageThatTheDeploymentKeepsOut(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	f.settings = build.Settings{HTTP: &build.HTTP{CORS: &build.CORS{Origins: []string{"https://a.test"}, OriginPattern: `https://.*\.b\.test`, Credentials: true}}}
	f.deploy(t, "agent")
	thread := f.newThread(t)
	for _, allowed := range [][]string{nil, {"https://chat.example"}} {
		f, _ := f.apart(t, nil, allowed...)
		for origin, status := range map[string]int{
			"https://evil.example": http.StatusForbidden, "https://chat.example": http.StatusForbidden, "https://c.b.test.evil": http.StatusForbidden, "null": http.StatusForbidden,
			"https://a.test": http.StatusSwitchingProtocols, "https://c.b.test": http.StatusSwitchingProtocols, f.URL: http.StatusSwitchingProtocols, "": http.StatusSwitchingProtocols,
		} {
			if _, answer := f.dial(t, thread, map[string]string{"Origin": origin}); answer.StatusCode != status {
				t.Errorf("the server lets in %v: the origin %q is answered with %d, not %d", allowed, origin, answer.StatusCode, status)
			}
		}
	}
}

// TestAttackASocketWithARevokedKey checks that such a socket has no more effect: the server
// authenticates each command.
func TestAttackASocketWithARevokedKey(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	at := f.newThread(t)
	s := f.talk(t, at)
	s.does(t, "run.start", script(add("model", "m1", "Hello")))
	f.settle(t, f.path(at))
	listed, err := f.keys.List(t.Context(), f.deployment.Workspace)
	check.Must(t, err)
	for _, key := range listed {
		check.Must(t, f.keys.Revoke(t.Context(), f.deployment.Workspace, key.ID))
	}
	s.send(t, `{"id":9,"method":"run.start","params":{"assistant_id":"agent","input":{}}}`)
	if _, answer := s.next(t); answer.string("error") != "permission_denied" || answer.member("id") != 9.0 {
		t.Errorf("the command is answered with %s", answer.text)
	}
	if code := s.closed(t); code != 4401 {
		t.Errorf("the WebSocket is closed with %d", code)
	}
	ref := thread.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment, Thread: path.Base(at)}
	runs, _, err := f.runs.List(t.Context(), ref, run.Filter{Window: record.Window{Limit: 10}})
	check.Must(t, err)
	if len(runs) != 1 {
		t.Errorf("there are %d runs", len(runs))
	}
}

// TestAttackASocketThatSubscribesWithoutEnd checks that the socket holds as many streams as
// the quota allows.
func TestAttackASocketThatSubscribesWithoutEnd(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Streams, 3))
	thread := f.newThread(t)
	s := f.talk(t, thread)
	for range 2 {
		s.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	}
	refused := s.command(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	if wantRefusal(t, refused, "unknown_error"); !strings.Contains(refused.string("message"), "quota streams_at_once") {
		t.Errorf("got %s", refused.text)
	}
	if code := s.closed(t); code != 4429 { // clients reconnect later
		t.Errorf("the WebSocket is closed with %d", code)
	}
	for { // until the places are given back
		again, answer := f.dial(t, thread, nil)
		if again != nil {
			if again.command(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}}).string("type") == "success" {
				return
			}
		} else if answer == nil || answer.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("got %v", answer)
		}
	}
}

// TestAttackASocketThatDoesNotRead checks that each subscription of such a socket costs no more
// than a batch of events (1 MiB, and one event more), and delays no other client.
func TestAttackASocketThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	reads := budget.New(64 << 20)
	f, _ = f.apart(t, reads)
	deaf, other := f.talk(t, thread), f.talk(t, thread)
	const subscriptions, event = 3, 50_100
	for range subscriptions {
		deaf.does(t, "subscription.subscribe", object{"channels": allChannels})
	}
	other.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	var steps []graphtest.Step
	for i := range 200 {
		steps = append(steps, emit("custom", strings.Repeat("x", 50_000)+fmt.Sprint(i)))
	}
	other.does(t, "run.start", script(append(steps, add("model", "m1", "Done"))...))
	wantLines(t, "the lifecycle", lifecycles(other.runs(t, 1)), "running", "completed")
	if held := reads.Held(); held > subscriptions*(1<<20+event) {
		t.Errorf("the reader that does not read holds %d bytes", held)
	}
}

// TestASocketEndsWithTheServer checks that the socket ends in a way after which clients
// reconnect.
func TestASocketEndsWithTheServer(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f, stop := f.apart(t, nil)
	s := f.talk(t, thread)
	s.does(t, "subscription.subscribe", object{"channels": allChannels})
	stop(fault.New(fault.Unavailable, "The server is stopping."))
	if code := s.closed(t); code != websocket.StatusServiceRestart {
		t.Errorf("the WebSocket is closed with %d", code)
	}
}

// TestSubscriptionsOfASocketKeepTheOrder checks the order of the events: no event of a run
// comes after its end, on any subscription.
func TestSubscriptionsOfASocketKeepTheOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	s := f.talk(t, thread)
	for _, channel := range []string{"lifecycle", "messages", "values"} {
		s.does(t, "subscription.subscribe", object{"channels": []string{channel}})
	}
	last := int64(0)
	for i := range 20 {
		var steps []graphtest.Step
		for range 20 {
			steps = append(steps, say(fmt.Sprint("m", i), "word "))
		}
		s.does(t, "run.start", script(append(steps, add("model", fmt.Sprint("m", i), strings.Repeat("word ", 20)))...))
		for _, e := range s.runs(t, 1) {
			if e.Seq <= last {
				t.Fatalf("the event %d follows %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
	late := f.talk(t, thread)
	late.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}, "since": 0})
	late.does(t, "subscription.subscribe", object{"channels": []string{"messages"}, "since": 0})
	wantLines(t, "the lifecycles", lifecycles(late.runs(t, 20))[38:], "running", "completed")
}

// TestSubscriptionsThatComeTogetherKeepTheOrder checks that the end of a run comes last for a
// client that does not wait for the answers: hooks subscribe to the end of runs last.
func TestSubscriptionsThatComeTogetherKeepTheOrder(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	channels := []string{"messages", "values", "lifecycle"}
	before := f.talk(t, thread)
	before.does(t, "subscription.subscribe", object{"channels": channels})
	before.does(t, "run.start", script(say("m1", "Hello"), add("model", "m1", "Hello")))
	want := len(before.runs(t, 1))
	for range 20 {
		s := f.talk(t, thread)
		for i, channel := range channels {
			s.send(t, fmt.Sprintf(`{"id":%d,"method":"subscription.subscribe","params":{"channels":[%q]}}`, i, channel))
		}
		got := 0
		for event := (&shownEvent{}); event == nil || event.root() != "completed"; {
			if event, _ = s.next(t); event != nil { // it is no answer to a subscription
				got++
			}
		}
		if got != want {
			t.Fatalf("the run has ended after %d of %d events", got, want)
		}
		check.Must(t, s.CloseNow())
	}
}

// TestTheEndOfARunWaitsForMoreSubscriptions of a client that has just subscribed: hooks start a
// run, subscribe to the ends of runs first, and drop what comes after an end.
func TestTheEndOfARunWaitsForMoreSubscriptions(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	watcher, s := f.talk(t, thread), f.talk(t, thread)
	watcher.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	s.does(t, "run.start", script(say("m1", "Hello"), add("model", "m1", "Hello")))
	watcher.runs(t, 1)
	asked := time.Now()
	s.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	wantLines(t, "the lifecycle", lifecycles(s.runs(t, 1)), "running", "completed")
	if waited := time.Since(asked); waited < 100*time.Millisecond {
		t.Errorf("the run's end came %v after the subscription, want it after 100 ms", waited)
	}
}
