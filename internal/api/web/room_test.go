package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/test/check"
)

const freeDocument = `{"paths":{"/things":{"post":{"requestBody":{"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{}}}}}`

// bounded takes JSON from the workspace that the header X-Tenant names, and holds each request
// until the test lets it go on.
func bounded(t *testing.T, total int64) (url string, room *budget.Budget, entered, goOn chan struct{}) {
	t.Helper()
	mux, _ := newMux()
	room = budget.New(total)
	mux.Bodies = room
	contract, err := web.Load(inJSON(t, freeDocument), 25<<20)
	check.Must(t, err)
	entered, goOn = make(chan struct{}, 100), make(chan struct{})
	routes := mux.Routes(contract, "", always(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			web.ActsFor(r.Context(), r.Header.Get("X-Tenant"))
			next.ServeHTTP(w, r)
		})
	}))
	routes.HandleFunc("POST /things", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") == "hostile" {
			entered <- struct{}{}
			<-goOn
		}
		w.WriteHeader(http.StatusOK)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, room, entered, goOn
}

// post returns the status and the text of an answer.
func post(t *testing.T, url, tenant, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/things", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Tenant", tenant)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}

// TestAttackManyLargeBodies has as many bodies worked on at a time as one workspace's part of
// the budget has room for. A small body, and a large body of another workspace, do not wait for
// them.
func TestAttackManyLargeBodies(t *testing.T) {
	t.Parallel()
	const size, attackers, total = 1 << 20, 12, 24 << 20
	url, room, entered, goOn := bounded(t, total)
	body := `{"input":{"a":"` + strings.Repeat("x", size) + `"}}`
	done := make(chan int, attackers)
	for range attackers {
		go func() {
			status, _ := post(t, url, "hostile", body)
			done <- status
		}()
	}
	select {
	case <-entered:
	case <-time.After(time.Minute):
		t.Fatal("no large request is worked on")
	}
	for tenant, text := range map[string]string{"hostile but small": `{"input":{}}`, "other": body} {
		if status, answer := post(t, url, tenant, text); status != http.StatusOK {
			t.Errorf("%s: got %d %s", tenant, status, answer)
		}
	}
	if held := room.Held(); held == 0 || held > total {
		t.Errorf("%d bytes are held of %d", held, total)
	}
	if len(entered) >= attackers/2 {
		t.Errorf("%d large requests are worked on at once", len(entered)+1)
	}
	close(goOn)
	for range attackers {
		if status := <-done; status != http.StatusOK {
			t.Errorf("got %d", status)
		}
	}
	if held := room.Held(); held != 0 {
		t.Errorf("%d bytes are held in the end", held)
	}
}

// TestAttackMillionsOfValues checks that too many values are refused also in parts that no
// schema describes, and that text that only looks like values is not refused.
func TestAttackMillionsOfValues(t *testing.T) {
	t.Parallel()
	url, _, _, _ := bounded(t, 192<<20) //nolint:dogsled // the test needs the address only
	zeros := `{"input":{"a":[` + strings.Repeat("0,", 2_000_000) + `0]}}`
	if status, text := post(t, url, "a", zeros); status != http.StatusUnprocessableEntity || !strings.Contains(text, "at most 1000000 JSON values") {
		t.Errorf("got %d %.200s", status, text)
	}
	commas := `{"input":{"a":"\"` + strings.Repeat(",[{", 2_000_000) + `"}}`
	if status, text := post(t, url, "a", commas); status != http.StatusOK {
		t.Errorf("got %d %.200s", status, text)
	}
}

// TestAttackMillionsOfValuesHoldNoMemory checks that a body gives its memory back as soon as it
// has had too many values, while the rest of it still arrives.
func TestAttackMillionsOfValuesHoldNoMemory(t *testing.T) {
	t.Parallel()
	url, room, _, _ := bounded(t, 192<<20)
	begun, values, rest := `{"input":{"a":[0`+strings.Repeat(",0", 500_000), strings.Repeat(",0", 600_000), `]}}`
	connection, answers := begin(t, url, "/things", len(begun)+len(values)+len(rest), "X-Tenant: a")
	held := func(want bool) {
		t.Helper()
		late := time.After(time.Minute)
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for (room.Held() > 0) != want {
			select {
			case <-late:
				t.Fatalf("%d bytes are held", room.Held())
			case <-again.C:
			}
		}
	}
	fmt.Fprint(connection, begun)
	held(true)
	fmt.Fprint(connection, values)
	held(false)
	fmt.Fprint(connection, rest)
	wantAnswer(t, answers, http.StatusUnprocessableEntity)
}

// TestAttackABodyThatStops takes of the budget only the bytes that have arrived, not the
// promised bytes.
func TestAttackABodyThatStops(t *testing.T) {
	t.Parallel()
	url, room, _, _ := bounded(t, 8<<20)
	for range 10 {
		connection, _ := begin(t, url, "/things", 20<<20, "X-Tenant: hostile")
		fmt.Fprint(connection, `{"input":{"a":"`)
	}
	start := time.Now()
	if status, text := post(t, url, "other", `{"input":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`); status != http.StatusOK {
		t.Errorf("got %d %s", status, text)
	}
	if took := time.Since(start); took > 20*time.Second || room.Held() != 0 {
		t.Errorf("it took %s, and %d bytes are held", took, room.Held())
	}
}
