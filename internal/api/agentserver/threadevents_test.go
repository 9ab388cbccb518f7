package agentserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// allChannels are the channels of the thread-centric protocol.
var allChannels = []string{"lifecycle", "values", "updates", "messages", "tools", "tasks", "checkpoints", "custom", "input"}

// shownEvent is an event of the thread-centric protocol.
type shownEvent struct {
	Type   string
	ID     string `json:"event_id"`
	Seq    int64
	Method string
	Params struct {
		Namespace []string
		Timestamp int64
		Node      string
		Data      json.RawMessage
	}
}

// String returns an event in one line, without the parts that differ from run to run.
func (e shownEvent) String() string {
	where := strings.Join(e.Params.Namespace, "|")
	if e.Params.Node != "" {
		where += "@" + e.Params.Node
	}
	return strings.TrimSpace(e.Method+" "+where) + " " + string(e.Params.Data)
}

// root returns the text of a lifecycle event of the run itself, "" for any other event.
func (e shownEvent) root() string {
	var said struct{ Event string }
	if e.Method != "lifecycle" || len(e.Params.Namespace) > 0 || json.Unmarshal(e.Params.Data, &said) != nil {
		return ""
	}
	return said.Event
}

// spectator reads the events of a thread.
type spectator struct {
	*bufio.Reader
	leave func()
}

func (f *fixture) watch(t *testing.T, thread string, body object) *spectator {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	answer := f.open(ctx, t, "POST", f.path(thread+"/stream/events"), body, map[string]string{auth.HeaderKey: f.key})
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream is answered with %d %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { leave(); _, _ = io.Copy(io.Discard, answer.Body); answer.Body.Close() })
	return &spectator{bufio.NewReader(answer.Body), leave}
}

func (s *spectator) next(t *testing.T) shownEvent {
	t.Helper()
	raw, err := nextEvent(s.Reader)
	check.Must(t, err)
	var e shownEvent
	check.Must(t, json.Unmarshal([]byte(raw.Data), &e))
	if e.Type != "event" || raw.ID != e.ID || raw.Name != e.Method {
		t.Fatalf("the frame %v does not fit its event", raw)
	}
	return e
}

// until reads events up to and including the event for which isLast is true.
func (s *spectator) until(t *testing.T, isLast func(shownEvent) bool) []shownEvent {
	t.Helper()
	var events []shownEvent
	for {
		e := s.next(t)
		events = append(events, e)
		if isLast(e) {
			return events
		}
	}
}

// runs reads until some runs have ended.
func (s *spectator) runs(t *testing.T, count int) []shownEvent {
	t.Helper()
	return s.until(t, func(e shownEvent) bool {
		if root := e.root(); root != "" && root != "running" {
			count--
		}
		return count == 0
	})
}

func eventLines(events []shownEvent) []string {
	all := []string{}
	for _, e := range events {
		all = append(all, e.String())
	}
	return all
}

func of(events []shownEvent, methods ...string) []shownEvent {
	var some []shownEvent
	for _, e := range events {
		for _, method := range methods {
			if e.Method == method {
				some = append(some, e)
			}
		}
	}
	return some
}

// command sends a command, and returns its answer.
func (f *fixture) command(t *testing.T, thread, method string, params object) response {
	t.Helper()
	answer := f.call(t, "POST", thread+"/commands", object{"id": 7, "method": method, "params": params})
	wantStatus(t, answer, http.StatusOK)
	if answer.member("id") != 7.0 {
		t.Errorf("%s is answered with the id %v", method, answer.member("id"))
	}
	return answer
}

// does sends a command that succeeds.
func (f *fixture) does(t *testing.T, thread, method string, params object) response {
	t.Helper()
	answer := f.command(t, thread, method, params)
	if answer.string("type") != "success" {
		t.Fatalf("%s: %s", method, answer.text)
	}
	return answer
}

// wantRefusal checks the error code in the answer to a command.
func wantRefusal(t *testing.T, answer response, code string) {
	t.Helper()
	if answer.string("type") != "error" || answer.string("error") != code || answer.string("message") == "" {
		t.Errorf("got %s, want the error %s", answer.text, code)
	}
}

func newThreadPath(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("/threads/0197a000-0000-7000-8000-%012x", len(t.Name()))
}

// token is a step with which the node model shows a part of a message.
func token(id, text string) graphtest.Step {
	return emit("messages", []any{object{"type": "AIMessageChunk", "id": id, "content": text}, object{"graph_node": "model"}})
}

// heldWriter sends the header of an answer, and holds the handler until goOn is closed.
type heldWriter struct {
	http.ResponseWriter
	goOn chan struct{}
}

func (w heldWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w heldWriter) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	<-w.goOn
}

// TestRunsRightAfterTheHeader checks that a stream begins where the thread was when its header was
// sent: runs that the client makes then are shown, however soon they end.
func TestRunsRightAfterTheHeader(t *testing.T) {
	t.Parallel()
	for _, exists := range []bool{false, true} {
		f := setUp(t, nil)
		thread := newThreadPath(t)
		var want []string
		say := func(text string) {
			body := script(emit("custom", text))
			body["if_not_exists"] = "create"
			wantStatus(t, f.call(t, "POST", thread+"/runs/wait", body), http.StatusOK)
			want = append(want, `custom {"payload":"`+text+`"}`)
		}
		if exists {
			say("before")
		}
		goOn := make(chan struct{})
		holding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.Config.Handler.ServeHTTP(heldWriter{w, goOn}, r)
		}))
		t.Cleanup(holding.Close)
		through := *f
		through.Server = holding
		shown := through.watch(t, thread, object{"channels": []string{"lifecycle", "custom"}})
		say("first")
		say("second")
		close(goOn)
		if diff := cmp.Diff(want, eventLines(of(shown.runs(t, len(want)), "custom"))); diff != "" {
			t.Errorf("the thread exists: %v, the events (-want +got):\n%s", exists, diff)
		}
	}
}

// TestEventsOfARun has an agent that does not know the protocol.
func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := newThreadPath(t)
	call := object{"id": "c1", "name": "look", "args": object{"at": "sky"}}
	steps := []graphtest.Step{
		emit("messages", []any{object{"type": "AIMessageChunk", "id": "m1", "content": "", "tool_call_chunks": []any{object{"index": 0, "id": "c1", "name": "look", "args": `{"at":`}}}, object{"graph_node": "model"}}),
		emit("messages", []any{object{"type": "AIMessageChunk", "id": "m1", "content": "", "tool_call_chunks": []any{object{"index": 0, "args": `"sky"}`}}}, object{"graph_node": "model"}}),
		emit("updates", object{"model": object{"messages": []any{object{"type": "ai", "id": "m1", "content": "", "tool_calls": []any{call}}}}}),
		emit("custom", object{"name": "progress", "payload": 1}),
		emit("custom", "half"),
		emit("updates", object{"tools": object{"messages": []any{object{"type": "tool", "id": "t1", "tool_call_id": "c1", "name": "look", "content": "blue"}}}}),
		emit("updates|look:1", object{"inner": object{"seen": "blue"}}),
		token("m2", "It is "), emit("messages", []any{object{"type": "ai", "id": "m2", "content": "blue."}, object{"graph_node": "model"}}),
		add("model", "m2", "It is blue."),
	}
	present := f.watch(t, thread, object{"channels": allChannels}) // before the thread exists
	begun := f.does(t, thread, "run.start", script(steps...))
	all := present.runs(t, 1)
	id := begun.string("result", "run_id")
	if begun.member("meta", "applied_through_seq").(float64) >= float64(all[0].Seq) {
		t.Errorf("the command says %v, and the first event has the number %d", begun.member("meta"), all[0].Seq)
	}
	want := []string{
		`lifecycle {"event":"running","graph_name":"agent"}`,
		`messages @model {"event":"message-start","id":"m1","metadata":{"graph_node":"model"},"role":"ai","run_id":"m1"}`,
		`messages @model {"content":{"args":"","id":"c1","name":"look","type":"tool_call_chunk"},"event":"content-block-start","id":"m1","index":0,"run_id":"m1"}`,
		`messages @model {"delta":{"fields":{"args":"{\"at\":","id":"c1","name":"look","type":"tool_call_chunk"},"type":"block-delta"},"event":"content-block-delta","id":"m1","index":0,"run_id":"m1"}`,
		`messages @model {"delta":{"fields":{"args":"{\"at\":\"sky\"}","id":"c1","name":"look","type":"tool_call_chunk"},"type":"block-delta"},"event":"content-block-delta","id":"m1","index":0,"run_id":"m1"}`,
		`messages @model {"content":{"args":{"at":"sky"},"id":"c1","name":"look","type":"tool_call"},"event":"content-block-finish","id":"m1","index":0,"run_id":"m1"}`,
		`messages @model {"event":"message-finish","id":"m1","reason":"stop","run_id":"m1"}`,
		`tools @model {"event":"tool-started","input":{"at":"sky"},"tool_call_id":"c1","tool_name":"look"}`,
		`updates @model {"messages":[{"content":"","id":"m1","tool_calls":[{"args":{"at":"sky"},"id":"c1","name":"look"}],"type":"ai"}]}`,
		`custom {"name":"progress","payload":1}`,
		`custom {"payload":"half"}`,
		`tools {"event":"tool-finished","output":{"content":"blue","id":"t1","name":"look","tool_call_id":"c1","type":"tool"},"tool_call_id":"c1"}`,
		`updates @tools {"messages":[{"content":"blue","id":"t1","name":"look","tool_call_id":"c1","type":"tool"}]}`,
		`lifecycle look:1 {"event":"started","graph_name":"look"}`,
		`updates look:1@inner {"seen":"blue"}`,
		`messages @model {"event":"message-start","id":"m2","metadata":{"graph_node":"model"},"role":"ai","run_id":"m2"}`,
		`messages @model {"content":{"text":"","type":"text"},"event":"content-block-start","id":"m2","index":0,"run_id":"m2"}`,
		`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"It is "},"id":"m2","run_id":"m2"}`,
		`messages @model {"event":"content-block-delta","index":0,"delta":{"type":"text-delta","text":"blue."},"id":"m2","run_id":"m2"}`,
		`messages @model {"content":{"text":"It is blue.","type":"text"},"event":"content-block-finish","id":"m2","index":0,"run_id":"m2"}`,
		`messages @model {"event":"message-finish","id":"m2","reason":"stop","run_id":"m2"}`,
		`updates @model {"messages":[{"content":"It is blue.","id":"m2","type":"ai"}]}`,
		`lifecycle look:1 {"event":"completed","graph_name":"look"}`,
		`lifecycle {"event":"completed","graph_name":"agent"}`,
	}
	if diff := cmp.Diff(want, eventLines(of(all, "lifecycle", "messages", "tools", "updates", "custom"))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if all[0].ID != "synth:"+id+":running" || all[len(all)-1].ID != "synth:"+id+":completed" {
		t.Errorf("the lifecycle has the ids %s and %s", all[0].ID, all[len(all)-1].ID)
	}
	states := of(all, "checkpoints", "values")
	for i := 0; i < len(states); i += 2 {
		if states[i].Method != "checkpoints" || states[i+1].Method != "values" || states[i+1].Seq != states[i].Seq+1 {
			t.Errorf("%v is not directly before %v", states[i], states[i+1])
		}
	}
	if len(states) != 8 {
		t.Errorf("there are %d states: %v", len(states)/2, eventLines(states))
	}
	f.everyReplayIsTheSame(t, thread, all)
}

// TestAnUnknownChannelIsRefused checks that no client waits for events that cannot come.
func TestAnUnknownChannelIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, wrong := range []string{"zz", "custom:", "Values", "custom2"} {
		refused := f.call(t, "POST", thread+"/stream/events", object{"channels": []string{"values", wrong}})
		wantStatus(t, refused, http.StatusUnprocessableEntity)
		want := object{"detail": []any{object{"loc": []any{"body", "channels", 1.0}, "type": "enum", "msg": fmt.Sprintf("There is no channel %q", wrong)}}}
		if diff := cmp.Diff(any(want), refused.body); diff != "" {
			t.Errorf("the refusal (-want +got):\n%s", diff)
		}
	}
	f.watch(t, thread, object{"channels": append(allChannels, "custom:any")})
}

// TestAQuietStreamOfAThread checks that such a stream has comment lines, from which clients
// learn that the connection is alive.
func TestAQuietStreamOfAThread(t *testing.T) {
	t.Parallel()
	f := setUpImpatient(t, nil, 20*time.Millisecond)
	s := f.watch(t, f.newThread(t), object{"channels": allChannels})
	for range 3 {
		line, err := s.ReadString('\n')
		if check.Must(t, err); line != ": heartbeat\n" {
			t.Fatalf("the stream has %q", line)
		}
	}
}

// TestAttackAStreamThatIsNotRead checks that such a stream costs no more than a batch of
// events, and delays no other reader of the thread.
func TestAttackAStreamThatIsNotRead(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	reads := budget.New(64 << 20)
	f, _ = f.apart(t, reads)
	for range 3 {
		f.watch(t, thread, object{"channels": allChannels})
	}
	other := f.watch(t, thread, object{"channels": []string{"lifecycle", "custom"}})
	var steps []graphtest.Step
	for i := range 60 {
		steps = append(steps, emit("custom", strings.Repeat("x", 50_000)+fmt.Sprint(i)))
	}
	f.does(t, thread, "run.start", script(append(steps, add("model", "m1", "Done"))...))
	seen := other.runs(t, 1)
	wantLines(t, "the lifecycle", lifecycles(seen), "running", "completed")
	if got := len(of(seen, "custom")); got != len(steps) {
		t.Errorf("the reader got %d events, want %d", got, len(steps))
	}
	if held := reads.Held(); held > 3*(1<<20+60_000) { // the last event of a batch may exceed a MiB
		t.Errorf("the readers that do not read hold %d bytes", held)
	}
}

// everyReplayIsTheSame reads the events of a run again, from the beginning and after each
// event.
func (f *fixture) everyReplayIsTheSame(t *testing.T, thread string, all []shownEvent) {
	t.Helper()
	for i := -1; i < len(all)-1; i++ {
		body := object{"channels": allChannels}
		if i >= 0 {
			body["since"] = all[i].Seq
			if i > 0 && all[i].Seq <= all[i-1].Seq {
				t.Errorf("%v comes behind %v", all[i], all[i-1])
			}
		}
		again := f.watch(t, thread, body)
		if diff := cmp.Diff(all[i+1:], again.runs(t, 1)); diff != "" {
			t.Fatalf("behind event %d (-first +again):\n%s", i, diff)
		}
		again.leave()
	}
}
