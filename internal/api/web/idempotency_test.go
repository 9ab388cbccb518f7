package web_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// claims claims keys in a store.
func claims(s *idempotency.Store) web.Claim {
	return func(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error) {
		return s.Claim(ctx, idempotency.Request{Workspace: "w", Key: key, Fingerprint: fingerprint})
	}
}

// newAnswers returns a store over a table.
func newAnswers(t *testing.T, tb table.Table, c *fixtures.Clock) *idempotency.Store {
	t.Helper()
	key := fixtures.Key(t)
	return idempotency.NewStore(tb, key, c.Now)
}

// newRepeatable are widgets whose changes may be repeated.
func newRepeatable(t *testing.T, claim web.Claim) *widgets {
	t.Helper()
	return newGuardedWidgets(t, true, nil, claim)
}

func newRepeatables(t *testing.T) (*widgets, *fixtures.Clock) {
	t.Helper()
	c := fixtures.NewClock()
	tb := fixtures.Table(t, sqlite.WithClock(c.Now))
	s := newRepeatable(t, claims(newAnswers(t, tb, c)))
	s.answers = tb
	return s, c
}

func isReplay(w *httptest.ResponseRecorder) bool {
	return w.Header().Get("Idempotency-Replayed") == "true"
}

// sameAnswer checks that the second answer is the replay of the first.
func sameAnswer(t *testing.T, first, again *httptest.ResponseRecorder) {
	t.Helper()
	if isReplay(first) || !isReplay(again) {
		t.Errorf("Idempotency-Replayed: got %q, then %q", first.Header().Get("Idempotency-Replayed"), again.Header().Get("Idempotency-Replayed"))
	}
	if first.Header().Get("X-Request-Id") == again.Header().Get("X-Request-Id") {
		t.Error("two requests have one id")
	}
	for _, w := range []*httptest.ResponseRecorder{first, again} {
		w.Header().Del("X-Request-Id")
		w.Header().Del("Idempotency-Replayed")
	}
	if first.Code != again.Code || first.Body.String() != again.Body.String() {
		t.Errorf("got %d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if diff := cmp.Diff(first.Header(), again.Header()); diff != "" {
		t.Errorf("headers (-first +again):\n%s", diff)
	}
}

func TestARequestIsExecutedOnce(t *testing.T) {
	t.Parallel()
	for i, request := range []struct{ method, target, body string }{
		{"POST", "/widgets", `{"text":"a"}`},
		{"PATCH", "/widgets/1", `{"text":"b"}`},
		{"PATCH", "/widgets/1?x=y", ""},
		{"DELETE", "/widgets/1", ""},
	} {
		s, c := newRepeatables(t)
		key := strings.Repeat("k", 255-i)
		first := send(t, s, request.method, request.target, request.body, "Idempotency-Key", key)
		again := send(t, s, request.method, request.target, request.body, "Idempotency-Key", key)
		if i < 2 && !strings.HasPrefix(first.Body.String(), strings.TrimSuffix(request.body, "}")) {
			t.Errorf("%s: the handler did not get the body: %s", request.method, first.Body)
		}
		sameAnswer(t, first, again)
		if s.calls != 1 || first.Code >= 300 {
			t.Errorf("%s: executed %d times, status %d", request.method, s.calls, first.Code)
		}
		if w := send(t, s, request.method, request.target, request.body, "Idempotency-Key", "another"); isReplay(w) || s.calls != 2 {
			t.Errorf("%s under another key: executed %d times", request.method, s.calls)
		}
		if w := send(t, s, request.method, request.target, request.body); isReplay(w) || s.calls != 3 {
			t.Errorf("%s without a key: executed %d times", request.method, s.calls)
		}
		c.Pass(24*time.Hour - time.Second)
		if w := send(t, s, request.method, request.target, request.body, "Idempotency-Key", key); !isReplay(w) {
			t.Errorf("%s within a day: got %d", request.method, w.Code)
		}
		c.Pass(time.Second)
		if w := send(t, s, request.method, request.target, request.body, "Idempotency-Key", key); isReplay(w) || s.calls != 4 {
			t.Errorf("%s after a day: executed %d times", request.method, s.calls)
		}
	}
}

func TestAKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	send(t, s, "PATCH", "/widgets/1", `{"text":"a"}`, "Idempotency-Key", "k")
	want := []detail{{`["header","Idempotency-Key"]`, "value_error", "The key belongs to another request; each request has a key of its own"}}
	for _, request := range []struct{ method, target, body string }{
		{"PATCH", "/widgets/1", `{"text":"b"}`},
		{"PATCH", "/widgets/1", `{"text":"a"} `},
		{"PATCH", "/widgets/1", ``},
		{"PATCH", "/widgets/2", `{"text":"a"}`},
		{"PATCH", "/widgets/1?x", `{"text":"a"}`},
		{"POST", "/widgets", `{"text":"a"}`},
		{"DELETE", "/widgets/1", ``},
	} {
		w := send(t, s, request.method, request.target, request.body, "Idempotency-Key", "k")
		if diff := cmp.Diff(want, problemsOf(t, w)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", request, diff)
		}
	}
	if s.calls != 1 {
		t.Errorf("executed %d times", s.calls)
	}
	send(t, s, "PATCH", "/widgets/1", "", "Idempotency-Key", "method")
	if w := send(t, s, "DELETE", "/widgets/1", "", "Idempotency-Key", "method"); w.Code != 422 {
		t.Errorf("another method: got %d", w.Code)
	}
	// Reads ignore the header.
	if w := send(t, s, "GET", "/widgets/1", "", "Idempotency-Key", "k"); w.Code != 200 || isReplay(w) {
		t.Errorf("GET: got %d", w.Code)
	}
	// Operations without authentication ignore it, too, because there is no caller to keep the
	// answer for.
	for range 2 {
		if w := send(t, s, "POST", "/open", "", "Idempotency-Key", "k"); w.Code != 204 || isReplay(w) {
			t.Errorf("an open operation: got %d", w.Code)
		}
	}
}

func TestKeysAreChecked(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	for _, key := range []string{"", strings.Repeat("k", 256), "a\x00b", "a\tb", "ключ", "a\x7f"} {
		if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", key); len(problemsOf(t, w)) != 1 {
			t.Errorf("%q: got %d %s", key, w.Code, w.Body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/widgets", strings.NewReader("{}"))
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if problemsOf(t, w); s.calls != 0 {
		t.Errorf("executed %d times", s.calls)
	}
	for _, key := range []string{"k", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "with spaces ~!", strings.Repeat("k", 255)} {
		if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", key); w.Code != 201 {
			t.Errorf("%q: got %d %s", key, w.Code, w.Body)
		}
	}
}

// TestWhatIsNotExecutedClaimsNothing sends a bad request first, which the client corrects.
func TestWhatIsNotExecutedClaimsNothing(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	for _, body := range []string{`{"text":"longer than twenty characters"}`, `{"text":`} {
		if w := send(t, s, "POST", "/widgets", body, "Idempotency-Key", "k"); w.Code != 422 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if w := send(t, s, "POST", "/widgets", `{"text":"mended"}`, "Idempotency-Key", "k"); w.Code != 201 || isReplay(w) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestWhichAnswersAreKept has a handler fail in all possible ways.
func TestWhichAnswersAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle func(*widgets, http.ResponseWriter, *http.Request)
		status int
		isKept bool
	}{
		"a refusal": {func(s *widgets, w http.ResponseWriter, r *http.Request) {
			s.Error(w, r, fault.New(fault.NotFound, "There is no such widget."))
		}, 404, true},
		"a conflict": {func(s *widgets, w http.ResponseWriter, r *http.Request) {
			s.Error(w, r, fault.New(fault.Conflict, "It is busy. Try again in a moment."))
		}, 409, false},
		"nothing written":  {func(*widgets, http.ResponseWriter, *http.Request) {}, 200, true},
		"an unknown error": {func(s *widgets, w http.ResponseWriter, r *http.Request) { s.Error(w, r, errors.New("disk is full")) }, 500, false},
		"a panic":          {func(*widgets, http.ResponseWriter, *http.Request) { panic("at the disco") }, 500, false},
		"not available": {func(s *widgets, w http.ResponseWriter, r *http.Request) {
			s.Error(w, r, fault.New(fault.Unavailable, "Later."))
		}, 503, false},
		"too many requests": {func(_ *widgets, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, 429, false},
		"another state than the client expects": {func(_ *widgets, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPreconditionFailed)
		}, 412, false},
		"nothing to keep": {func(_ *widgets, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusCreated)
		}, 201, false},
		"nothing to keep, and something else": {func(s *widgets, w http.ResponseWriter, r *http.Request) {
			var o record.Outbox
			notes := web.StoreRefusal(r.Context(), func(string) *fault.Error { return fault.New(fault.Conflict, "It is shown once.") })
			if err := record.AddNotes(r.Context(), &o, "made", notes...); err != nil {
				panic(err)
			}
			if err := record.Commit(r.Context(), s.answers, o); err != nil {
				panic(err)
			}
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusConflict)
		}, 409, true},
		"an early response": {func(_ *widgets, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(http.StatusInternalServerError)
		}, 202, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := newRepeatables(t)
			s.handle = func(w http.ResponseWriter, r *http.Request) { c.handle(s, w, r) }
			for i := range 2 {
				w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k")
				if w.Code != c.status || isReplay(w) != (c.isKept && i == 1) {
					t.Errorf("request %d: got %d %s, replay %t", i, w.Code, w.Body, isReplay(w))
				}
			}
			if want := map[bool]int{true: 1, false: 2}[c.isKept]; s.calls != want {
				t.Errorf("executed %d times, want %d", s.calls, want)
			}
			// A key that was given back is free for another request.
			if w := send(t, s, "POST", "/widgets", `{"text":"x"}`, "Idempotency-Key", "k"); (w.Code == 422) != c.isKept {
				t.Errorf("another request: got %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestAnAnswerThatBreaksOff has an answer that the client could take for complete.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"half":`)
		s.Error(w, r, errors.New("no more"))
	}
	for range 2 {
		func() {
			defer func() {
				if cause := recover(); cause != http.ErrAbortHandler {
					t.Errorf("got panic %v, want the connection to be closed", cause)
				}
			}()
			send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k")
		}()
	}
	if s.calls != 2 {
		t.Errorf("executed %d times, want 2", s.calls)
	}
}

// TestManyEqualRequestsAtOnce sends requests to two servers over one table.
func TestManyEqualRequestsAtOnce(t *testing.T) {
	t.Parallel()
	c := fixtures.NewClock()
	claim := claims(newAnswers(t, fixtures.Table(t, sqlite.WithClock(c.Now)), c))
	servers := []*widgets{newRepeatable(t, claim), newRepeatable(t, claim)}
	release := make(chan struct{})
	for _, s := range servers {
		s.handle = func(w http.ResponseWriter, _ *http.Request) {
			<-release
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "made")
		}
	}
	const n = 50
	answered := make(chan *httptest.ResponseRecorder, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			answered <- send(t, servers[i%2], "POST", "/widgets", `{"text":"x"}`, "Idempotency-Key", "k")
		})
	}
	// All requests except one are answered while that one is executed.
	for range n - 1 {
		w := <-answered
		if w.Code != 409 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "is being executed") {
			t.Errorf("got %d %v %s, want 409", w.Code, w.Header(), w.Body)
		}
	}
	close(release)
	if w := <-answered; w.Code != 201 || isReplay(w) {
		t.Errorf("the one: got %d %s", w.Code, w.Body)
	}
	wg.Wait()
	if calls := servers[0].calls + servers[1].calls; calls != 1 {
		t.Errorf("executed %d times", calls)
	}
	for _, s := range servers {
		if w := send(t, s, "POST", "/widgets", `{"text":"x"}`, "Idempotency-Key", "k"); w.Code != 201 || !isReplay(w) || w.Body.String() != "made" {
			t.Errorf("afterwards: got %d %s", w.Code, w.Body)
		}
	}
}

// TestAClientThatGaveUp asks again for the outcome of its request.
func TestAClientThatGaveUp(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	begun, gone := make(chan struct{}), make(chan struct{})
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-gone
		if err := r.Context().Err(); err != nil {
			s.Error(w, r, err)
			return
		}
		fmt.Fprint(w, "done")
	}
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/widgets", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", "k")
	go func() {
		<-begun
		leave()
		close(gone)
	}()
	s.ServeHTTP(httptest.NewRecorder(), r)
	if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k"); w.Body.String() != "done" || !isReplay(w) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestAServerThatStops cancels its requests, also requests that go on without their clients.
func TestAServerThatStops(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	ctx, stop := context.WithCancelCause(t.Context())
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		stop(fault.New(fault.Unavailable, "The server is stopping. Try again."))
		<-r.Context().Done()
		s.Error(w, r, r.Context().Err())
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/widgets", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 503 || !strings.Contains(w.Body.String(), "stopping") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	s.handle = nil
	if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k"); w.Code != 201 {
		t.Errorf("afterwards: got %d %s", w.Code, w.Body)
	}
}

// full is a table that takes claims, and has no space for answers.
type full struct{ table.Table }

func (full) Transact(_ context.Context, writes ...table.Write) error {
	if _, claims := writes[0].(table.Put); !claims {
		return errors.New("no space left")
	}
	return nil
}

// TestAnAnswerThatCannotBeKept checks that such an answer is sent all the same: the request was
// executed.
func TestAnAnswerThatCannotBeKept(t *testing.T) {
	t.Parallel()
	s := newRepeatable(t, claims(newAnswers(t, full{}, fixtures.NewClock())))
	if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k"); w.Code != 201 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(s.logs.String(), "no space left") {
		t.Errorf("the log does not say so: %s", s.logs)
	}
}

// TestAnExecutionThatTakesTooLong ends when another execution may begin.
func TestAnExecutionThatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := newRepeatable(t, claims(newAnswers(t, full{}, fixtures.NewClock())))
	synctest.Test(t, func(t *testing.T) {
		s.handle = func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			s.Error(w, r, r.Context().Err())
		}
		began := time.Now()
		w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k")
		if took := time.Since(began); took != idempotency.Lease || w.Code != 503 || w.Header().Get("Retry-After") != "2" {
			t.Errorf("got %d %s after %s", w.Code, w.Body, took)
		}
	})
}

func TestAStoreThatFails(t *testing.T) {
	t.Parallel()
	s := newRepeatable(t, func(context.Context, string, [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error) {
		return nil, nil, errors.New("no space left")
	})
	if w := send(t, s, "POST", "/widgets", "{}", "Idempotency-Key", "k"); w.Code != 500 || s.calls != 0 {
		t.Errorf("got %d, executed %d times", w.Code, s.calls)
	}
}

// TestARepetitionUnderACondition repeats a request that would be refused if it were executed
// again.
func TestARepetitionUnderACondition(t *testing.T) {
	t.Parallel()
	s, _ := newRepeatables(t)
	tag := s.tagOf(t)
	first := send(t, s, "PATCH", "/widgets/1", `{"text":"x"}`, "Idempotency-Key", "k", "If-Match", tag)
	again := send(t, s, "PATCH", "/widgets/1", `{"text":"x"}`, "Idempotency-Key", "k", "If-Match", tag)
	sameAnswer(t, first, again)
	if first.Code != 200 || first.Header().Get("ETag") == "" {
		t.Errorf("got %d %v", first.Code, first.Header())
	}
}
