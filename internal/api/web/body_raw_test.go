package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// receiver takes raw bodies of up to 1000 bytes from callers with the header X-Signed, and
// JSON.
func receiver(t *testing.T, arrival time.Duration) (url string, began *atomic.Int64) {
	t.Helper()
	mux, _ := newMux()
	contract := load(t, `{"paths":{"/hooks":{"post":{"security":[],"requestBody":{"x-body-limit":1000,"content":{"*/*":{"schema":{"type":"string"}}}},"responses":{}}},
		"/things":{"post":{"security":[],"requestBody":{"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{}}}}}`)
	check.Must(t, contract.SetArrival(arrival))
	began = &atomic.Int64{}
	take := func(w http.ResponseWriter, r *http.Request) {
		began.Add(1)
		if r.Header.Get("X-Signed") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			mux.Error(w, r, err)
		}
	}
	routes := mux.Routes(contract, "", nil)
	routes.HandleFunc("POST /hooks", take)
	routes.HandleFunc("POST /things", take)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, began
}

// begin sends the head of a request that promises a body, and returns the connection with the
// answer.
func begin(t *testing.T, url, path string, length int, headers ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	connection, err := net.Dial("tcp", host)
	check.Must(t, err)
	t.Cleanup(func() { connection.Close() })
	check.Must(t, connection.SetDeadline(time.Now().Add(time.Minute)))
	head := append([]string{"POST " + path + " HTTP/1.1", "Host: " + host, "Content-Type: application/json", fmt.Sprint("Content-Length: ", length)}, headers...)
	fmt.Fprint(connection, strings.Join(head, "\r\n")+"\r\n\r\n")
	return connection, bufio.NewReader(connection)
}

func wantAnswer(t *testing.T, answers *bufio.Reader, want int) {
	t.Helper()
	answer, err := http.ReadResponse(answers, nil)
	check.Must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != want {
		t.Errorf("got %d %s (%v), want %d", answer.StatusCode, text, err, want)
	}
}

// TestWhoMayNotSendARawBodyNeedNot checks that a caller without permission is refused before a
// byte of the body has come.
func TestWhoMayNotSendARawBodyNeedNot(t *testing.T) {
	t.Parallel()
	url, _ := receiver(t, time.Minute)
	_, answers := begin(t, url, "/hooks", 1<<20)
	wantAnswer(t, answers, http.StatusUnauthorized)
	url, _ = receiver(t, 100*time.Millisecond)
	// net/http waits for a body of this size before it answers.
	_, answers = begin(t, url, "/hooks", 900)
	wantAnswer(t, answers, http.StatusUnauthorized)
}

// TestABodyMustArriveInTime has clients that send nothing.
func TestABodyMustArriveInTime(t *testing.T) {
	t.Parallel()
	url, _ := receiver(t, 100*time.Millisecond)
	for _, path := range []string{"/hooks", "/things"} {
		_, answers := begin(t, url, path, 900, "X-Signed: yes")
		wantAnswer(t, answers, http.StatusBadRequest)
	}
}

// TestAttackSlowSendersOfRawBodies checks that slow senders delay no hook of another sender,
// however many they are.
func TestAttackSlowSendersOfRawBodies(t *testing.T) {
	t.Parallel()
	url, _ := receiver(t, time.Minute)
	for range 20 {
		connection, answer := begin(t, url, "/hooks", 900, "X-Signed: yes", "Expect: 100-continue")
		wantAnswer(t, answer, http.StatusContinue)
		fmt.Fprint(connection, "x")
	}
	connection, answer := begin(t, url, "/hooks", 900, "X-Signed: yes")
	fmt.Fprint(connection, strings.Repeat("x", 900))
	wantAnswer(t, answer, http.StatusOK)
}
