package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

// slowServer has an open page, a refused operation, an upload that reads on as long as bytes
// arrive, and a stream.
func slowServer(t *testing.T, arrival, refused time.Duration, start func(*httptest.Server)) *httptest.Server {
	t.Helper()
	mux, _ := newMux()
	mux.SetPatience(arrival, refused)
	mux.Handle("/open", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	mux.Handle("/silent", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	mux.Handle("/refused", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.Error(w, r, fault.New(fault.Unauthorized, "no"))
	}))
	mux.Handle("/upload", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			mux.Error(w, r, fault.New(fault.Invalid, "slow"))
			return
		}
		fmt.Fprint(w, n)
	}))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	start(server)
	t.Cleanup(server.Close)
	return server
}

// slowPaths are paths of slowServer, with the status of a request whose body does not arrive.
var slowPaths = map[string]int{"/open": 200, "/silent": 200, "/refused": 401, "/upload": 400, "/nowhere": 404, "/a//b": 404}

// TestAttackBodiesThatNeverArrive has clients that promise a body and send nothing. Each gets its
// answer, and each connection is closed soon after.
func TestAttackBodiesThatNeverArrive(t *testing.T) {
	t.Parallel()
	url := slowServer(t, 100*time.Millisecond, 50*time.Millisecond, (*httptest.Server).Start).URL
	for path, want := range slowPaths {
		for name, promise := range map[string]string{"length": "Content-Length: 10", "large": "Content-Length: 10000000", "chunks": "Transfer-Encoding: chunked"} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
				check.Must(t, err)
				defer connection.Close()
				check.Must(t, connection.SetDeadline(time.Now().Add(20*time.Second)))
				fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, promise)
				answers := bufio.NewReader(connection)
				wantAnswer(t, answers, want)
				var late net.Error
				if _, err := answers.ReadByte(); err == nil || (errors.As(err, &late) && late.Timeout()) {
					t.Errorf("the connection is still open (%v)", err)
				}
			})
		}
	}
}

// lazyBody is a body that sends some bytes and then nothing, until it is closed.
type lazyBody struct {
	begin  io.Reader
	closed chan struct{}
	once   sync.Once
}

func (b *lazyBody) Read(p []byte) (int, error) {
	if n, err := b.begin.Read(p); err == nil {
		return n, nil
	}
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b *lazyBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// TestAttackBodiesThatNeverArriveByHTTP2 sends many such requests over one connection. Each gets
// its answer, its stream ends, and the connection serves other requests.
func TestAttackBodiesThatNeverArriveByHTTP2(t *testing.T) {
	t.Parallel()
	server := slowServer(t, 100*time.Millisecond, 50*time.Millisecond, (*httptest.Server).StartTLS)
	client := server.Client()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for path, want := range slowPaths {
		for _, begin := range []string{"", "slow"} {
			all.Go(func() {
				body := &lazyBody{begin: strings.NewReader(begin), closed: make(chan struct{})}
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, body)
				if err != nil {
					t.Error(err)
					return
				}
				answer, err := client.Do(request)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				defer answer.Body.Close()
				if answer.StatusCode != want || answer.ProtoMajor != 2 {
					t.Errorf("%s: got %s over %s, want %d", path, answer.Status, answer.Proto, want)
				}
				if _, err := io.Copy(io.Discard, answer.Body); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				select {
				case <-body.closed: // the server has ended the stream
				case <-ctx.Done():
					t.Errorf("%s: the stream is still open", path)
				}
			})
		}
	}
	all.Wait()
	answer, err := client.Get(server.URL + "/open")
	check.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the connection answers %s", answer.Status)
	}
}

// TestAnUploadMayTakeAsLongAsItArrives takes longer than a body without a size may take,
// because it keeps arriving.
func TestAnUploadMayTakeAsLongAsItArrives(t *testing.T) {
	t.Parallel()
	const part, parts = 16 << 10, 6
	url := slowServer(t, time.Second, 50*time.Millisecond, (*httptest.Server).Start).URL
	body, send := io.Pipe()
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for range parts {
			<-tick.C
			fmt.Fprint(send, strings.Repeat("x", part))
		}
		send.Close()
	}()
	response, err := http.Post(url+"/upload", "application/gzip", body)
	check.Must(t, err)
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != fmt.Sprint(part*parts) {
		t.Errorf("got %d %s (%v)", response.StatusCode, text, err)
	}
}

// TestAConnectionServesAgainAfterItsDeadlines checks a second request after the deadlines of
// the first have passed.
func TestAConnectionServesAgainAfterItsDeadlines(t *testing.T) {
	t.Parallel()
	url := slowServer(t, 50*time.Millisecond, 20*time.Millisecond, (*httptest.Server).Start).URL
	connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	check.Must(t, err)
	defer connection.Close()
	answers := bufio.NewReader(connection)
	for range 2 {
		fmt.Fprint(connection, "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		wantAnswer(t, answers, http.StatusUnauthorized)
		<-time.After(100 * time.Millisecond)
	}
}

// TestAttackAnAnswerThatNobodyTakes has a client that asks for more than the sockets hold, and
// reads nothing.
func TestAttackAnAnswerThatNobodyTakes(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	mux.SetTaking(100 * time.Millisecond)
	ended := make(chan error, 1)
	mux.Handle("/large", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 64<<20))
		ended <- err
	}))
	server := httptest.NewServer(mux)
	defer server.Close()
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	check.Must(t, err)
	defer connection.Close()
	fmt.Fprint(connection, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("all of it was written")
		}
	case <-time.After(time.Minute):
		t.Error("the handler still waits for the client")
	}
}

// TestTheTimeOfWritesOverHTTP2 checks that the time in which a client must accept an answer passes
// only while the server writes.
func TestTheTimeOfWritesOverHTTP2(t *testing.T) {
	t.Parallel()
	const taking = time.Second // a busy machine may do nothing for a while
	mux, _ := newMux()
	mux.SetTaking(taking)
	ended := make(chan error, 1)
	mux.Handle("/large", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 64<<20))
		ended <- err
	}))
	mux.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range 2 {
			<-time.After(taking * 3 / 2)
			fmt.Fprint(w, "x")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ask := func(path string) *http.Response {
		t.Helper()
		answer, err := server.Client().Get(server.URL + path)
		check.Must(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	slow := ask("/slow")
	if text, err := io.ReadAll(slow.Body); err != nil || string(text) != "xx" || slow.ProtoMajor != 2 {
		t.Errorf("got %q over %s (%v)", text, slow.Proto, err)
	}
	ask("/large")
	if err := <-ended; err == nil {
		t.Error("an answer that nobody takes was written")
	}
}
