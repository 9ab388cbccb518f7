package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestStreamFrames(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Location", "/threads/t/runs/r")
	stream := web.NewStream(w)
	if err := stream.Send(
		web.Event{Name: "metadata", ID: "1", Data: []byte(`{"run_id":"r"}`)},
		web.Event{Data: []byte("{\n\"a\": \"\\n\"\r\n}")},
		web.Event{Name: "odd\nid: 9", ID: "2\r3", Data: []byte(`null`)},
	); err != nil {
		t.Fatal(err)
	}
	check.Must(t, stream.Heartbeat())
	want := "event: metadata\ndata: {\"run_id\":\"r\"}\nid: 1\n\n" +
		"data: { \"a\": \"\\n\"  }\n\n" +
		"event: odd id: 9\ndata: null\nid: 2 3\n\n" +
		": heartbeat\n"
	if diff := cmp.Diff(want, w.Body.String()); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	wantHeader := http.Header{
		"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}, "X-Accel-Buffering": {"no"},
		"Content-Location": {"/threads/t/runs/r"},
	}
	if diff := cmp.Diff(wantHeader, w.Header()); diff != "" || !w.Flushed {
		t.Errorf("flushed: %v; headers (-want +got):\n%s", w.Flushed, diff)
	}
}

// serve runs a Mux on one end of an in-memory connection, inside a synctest bubble, and returns
// the other end.
func serve(t *testing.T, handler func(*web.Mux, http.ResponseWriter, *http.Request)) (client net.Conn, l *check.Log, stop func()) {
	t.Helper()
	mux, l := failing(handler)
	serverEnd, clientEnd := net.Pipe()
	server := &http.Server{Handler: mux}
	listener := &oneConn{conn: serverEnd, closed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}()
	return clientEnd, l, func() {
		_ = clientEnd.Close()
		_ = server.Close()
		<-done
		// This is the bubble's time: net/http lingers for half a second over a connection that it
		// closes.
		time.Sleep(time.Second)
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// get sends a request and reads the head of its response.
func get(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	if _, err := fmt.Fprint(conn, "GET /fail HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	check.Must(t, err)
	return response
}

// silent sends nothing until ctx ends.
func silent(ctx context.Context, _ func(...web.Event) error) error {
	<-ctx.Done()
	return nil
}

func TestStreamFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bound := budget.New(1000)
		hold := budget.NewHold(bound, 0, time.Second, nil)
		conn, _, stop := serve(t, func(_ *web.Mux, w http.ResponseWriter, r *http.Request) {
			err := web.NewStream(w).Follow(budget.Holding(r.Context(), hold), web.HeartbeatInterval, func(ctx context.Context, send func(...web.Event) error) error {
				time.Sleep(12 * time.Second) // the bubble's time: two heartbeats
				if err := errors.Join(hold.Take(ctx, 400), send(web.Event{Name: "a", Data: []byte("1")}, web.Event{Name: "b", Data: []byte("2")})); err != nil {
					return err
				}
				time.Sleep(4 * time.Second)
				if held := bound.Held(); held != 0 {
					t.Errorf("%d bytes are held of what was sent", held)
				}
				err := errors.Join(hold.Take(ctx, 400), send(), hold.Take(ctx, 400), send(web.Event{Name: "c", Data: []byte("3")}))
				time.Sleep(4 * time.Second) // an event delays the heartbeat
				return err
			})
			if held := bound.Held(); err != nil || held != 0 {
				t.Errorf("Follow: %v, and %d bytes are held", err, held)
			}
		})
		defer stop()
		response := get(t, conn)
		got, err := io.ReadAll(response.Body)
		check.Must(t, err)
		want := ": heartbeat\n: heartbeat\nevent: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: c\ndata: 3\n\n"
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("stream (-want +got):\n%s", diff)
		}
	})
}

// TestStreamMayBeSilentForLong checks that the deadline of one event is not the deadline of the
// whole stream.
func TestStreamMayBeSilentForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, _, stop := serve(t, func(_ *web.Mux, w http.ResponseWriter, _ *http.Request) {
			if err := web.NewStream(w).Send(web.Event{Data: []byte("1")}); err != nil {
				t.Errorf("Send: %v", err)
			}
			time.Sleep(time.Hour)
		})
		defer stop()
		got, err := io.ReadAll(get(t, conn).Body)
		if err != nil || string(got) != "data: 1\n\n" {
			t.Errorf("stream: got %q and error %v", got, err)
		}
	})
}

func TestStreamEndsWhenTheClientGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		conn, l, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
			err := web.NewStream(w).Follow(r.Context(), time.Hour, silent)
			ended <- err
			m.Error(w, r, err)
		})
		get(t, conn)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: got %v, want context canceled", err)
		}
		if strings.Contains(l.String(), "ERROR") {
			t.Errorf("log:\n%s", l)
		}
	})
}

// TestStreamToASlowReader checks that a client that does not read loses its connection after
// the deadline, and that the stream stays ended.
func TestStreamToASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type result struct {
			first, second error
			took          time.Duration
		}
		ended := make(chan result, 1)
		conn, _, stop := serve(t, func(_ *web.Mux, w http.ResponseWriter, _ *http.Request) {
			stream := web.NewStream(w)
			start := time.Now()
			first := stream.Send(web.Event{Data: []byte(strings.Repeat("x", 1<<20))})
			took := time.Since(start)
			ended <- result{first, stream.Send(web.Event{Data: []byte("1")}), took}
		})
		defer stop()
		get(t, conn)
		got := <-ended
		if !errors.Is(got.first, os.ErrDeadlineExceeded) || got.took != 30*time.Second {
			t.Errorf("Send: got %v after %s, want the deadline after 30s", got.first, got.took)
		}
		if !errors.Is(got.second, os.ErrDeadlineExceeded) {
			t.Errorf("second Send: got %v, want the same error", got.second)
		}
	})
}

// TestTooLargeFromAClientThatStalls checks that a client that stalls in an over-long body is
// answered all the same.
func TestTooLargeFromAClientThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mux := newThings(t)
		conn, _, stop := serve(t, func(_ *web.Mux, w http.ResponseWriter, r *http.Request) {
			long := r.Clone(r.Context())
			long.Method, long.URL.Path, long.ContentLength = http.MethodPost, thingPath, 2*bodyLimit
			mux.ServeHTTP(w, long)
		})
		defer stop()
		start := time.Now()
		if _, err := fmt.Fprint(conn, "GET /fail HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		check.Must(t, err)
		if took := time.Since(start); response.StatusCode != http.StatusRequestEntityTooLarge || took != 5*time.Second {
			t.Errorf("got %d after %s, want 413 after 5s", response.StatusCode, took)
		}
	})
}

func TestAwait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		took   time.Duration
		value  string
		err    error
		status int
		body   string
		cut    bool
	}{
		{"soon", time.Second, `{"a":1}`, nil, 200, `{"a":1}`, false},
		{"late", 11 * time.Second, `{"a":1}`, nil, 200, "\n\n" + `{"a":1}`, false},
		{"soon, and an error", time.Second, "", fault.New(fault.NotFound, "gone"), 404, `{"detail":"gone"}`, false},
		{"late, and an error", 6 * time.Second, "", errors.New("disk full"), 200, "\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn, _, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
					err := web.Await(r.Context(), w, 5*time.Second, func(context.Context) (json.RawMessage, error) {
						time.Sleep(tt.took)
						return json.RawMessage(tt.value), tt.err
					})
					if err != nil {
						m.Error(w, r, err)
					}
				})
				defer stop()
				response := get(t, conn)
				got, err := io.ReadAll(response.Body)
				if response.StatusCode != tt.status || string(got) != tt.body || (err != nil) != tt.cut {
					t.Errorf("got %d %q and error %v; want %d %q, cut short: %v", response.StatusCode, got, err, tt.status, tt.body, tt.cut)
				}
				if got := response.Header.Get("Content-Type"); got != "application/json" {
					t.Errorf("Content-Type: got %q", got)
				}
				if whole := response.ContentLength == int64(len(tt.body)); whole != (tt.took < 5*time.Second) {
					t.Errorf("got a length of %d: only an answer that begins late is sent in pieces", response.ContentLength)
				}
			})
		})
	}
}

func TestAwaitEndsWhenTheClientGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		conn, _, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
			err := web.Await(r.Context(), w, 5*time.Second, func(ctx context.Context) (json.RawMessage, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			})
			m.Error(w, r, err)
		})
		get(t, conn)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("wait: got %v, want context canceled", err)
		}
	})
}

// TestAwaitWithASlowReader checks that a client that does not read the newlines loses its
// connection: the wait ends, and no error is logged.
func TestAwaitWithASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		start := time.Now()
		conn, l, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
			err := web.Await(r.Context(), w, 5*time.Second, func(ctx context.Context) (json.RawMessage, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			ended <- err
			m.Error(w, r, err)
		})
		defer stop()
		if _, err := fmt.Fprint(conn, "GET /fail HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || time.Since(start) != 35*time.Second {
			t.Errorf("Await: got %v after %s, want an error after 35s", err, time.Since(start))
		}
		synctest.Wait()
		if strings.Contains(l.String(), "ERROR") {
			t.Errorf("log:\n%s", l)
		}
	})
}

// broken is a client that takes nothing.
type broken struct{ http.ResponseWriter }

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAwaitWithABrokenConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := web.Await(t.Context(), broken{httptest.NewRecorder()}, time.Second, func(ctx context.Context) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Await: got %v, want the connection's error", err)
		}
	})
}

// TestAwaitValueDuringANewline checks that the value waits for a newline that is still being
// written.
func TestAwaitValueDuringANewline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, _, stop := serve(t, func(_ *web.Mux, w http.ResponseWriter, r *http.Request) {
			if err := web.Await(r.Context(), w, 5*time.Second, func(context.Context) (json.RawMessage, error) {
				time.Sleep(6 * time.Second)
				return json.RawMessage(`1`), nil
			}); err != nil {
				t.Errorf("Await: %v", err)
			}
		})
		defer stop()
		if _, err := fmt.Fprint(conn, "GET /fail HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// The newline is due at 5s, the value at 6s; nothing is read until now.
		time.Sleep(9 * time.Second)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		check.Must(t, err)
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != "\n1" {
			t.Errorf("body: got %q and error %v", got, err)
		}
	})
}

func TestAwaitPanicIsAnswered(t *testing.T) {
	t.Parallel()
	mux, _ := failing(func(_ *web.Mux, w http.ResponseWriter, r *http.Request) {
		_ = web.Await(r.Context(), w, time.Hour, func(context.Context) (json.RawMessage, error) { panic("boom") })
	})
	if w := send(t, mux, http.MethodGet, "/fail", ""); w.Code != http.StatusInternalServerError {
		t.Errorf("got %d, want 500", w.Code)
	}
}

func TestOneOrMany(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]web.OneOrMany[string]{
		`"a"`: {"a"}, `["a","b"]`: {"a", "b"}, ` [] `: {}, `null`: nil,
	} {
		var got web.OneOrMany[string]
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	var got web.OneOrMany[string]
	if err := json.Unmarshal([]byte(`5`), &got); err == nil {
		t.Errorf("5: got %v, want an error", got)
	}
}
