package web_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/test/check"
)

// buffered is a connection that keeps what is sent until the other end reads it.
type buffered struct {
	net.Conn

	sent chan []byte
}

func buffer(t *testing.T, conn net.Conn) buffered {
	t.Helper()
	b := buffered{conn, make(chan []byte, 1000)}
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case part := <-b.sent:
				if _, err := b.Conn.Write(part); err != nil {
					return
				}
			}
		}
	}()
	return b
}

func (b buffered) Write(part []byte) (int, error) {
	b.sent <- bytes.Clone(part)
	return len(part), nil
}

// dialSocket opens a WebSocket over a connection. pinged handles pings, and says whether the
// client answers them.
func dialSocket(t *testing.T, over net.Conn, pinged func(*websocket.Conn) bool) *websocket.Conn {
	t.Helper()
	var conn *websocket.Conn
	dial := func(context.Context, string, string) (net.Conn, error) { return buffer(t, over), nil }
	conn, _, err := websocket.Dial(t.Context(), "ws://server/fail", &websocket.DialOptions{
		HTTPClient:     &http.Client{Transport: &http.Transport{DialContext: dial}},
		OnPingReceived: func(context.Context, []byte) bool { return pinged(conn) },
	})
	check.Must(t, err)
	return conn
}

// TestASocketLivesWhileAMessageIsHandled leaves a message unread, and then handles it, for longer
// than a client may take to send a message, or to answer a ping. The message comes between a ping
// and its answer.
func TestASocketLivesWhileAMessageIsHandled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over, _, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
			socket, err := m.Upgrade(w, r, &web.Origins{}, 1000)
			check.Must(t, err)
			defer socket.Close(web.CloseRestart, "")
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			go func() {
				if err := socket.Watch(ctx, 5*time.Second); ctx.Err() == nil {
					t.Errorf("while a message is handled: %v", err)
				}
			}()
			message, err := socket.Next(ctx)
			check.Must(t, err)
			time.Sleep(10 * time.Minute)
			text, err := io.ReadAll(message)
			check.Must(t, err)
			time.Sleep(10 * time.Minute)
			check.Must(t, socket.Send(text))
		})
		defer stop()
		asked := false
		conn := dialSocket(t, over, func(conn *websocket.Conn) bool {
			if !asked {
				asked = true
				check.Must(t, conn.Write(t.Context(), websocket.MessageText, []byte("handle this")))
			}
			return true
		})
		if _, text, err := conn.Read(t.Context()); err != nil || string(text) != "handle this" {
			t.Errorf("got %q, %v", text, err)
		}
		check.Must(t, conn.CloseNow())
	})
}

// TestASocketEndsWithoutItsClient has a client that answers no ping.
func TestASocketEndsWithoutItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over, _, stop := serve(t, func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
			socket, err := m.Upgrade(w, r, &web.Origins{}, 1000)
			check.Must(t, err)
			ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
			defer cancel()
			go func() {
				if err := socket.Watch(ctx, 5*time.Second); ctx.Err() == nil {
					socket.Close(web.CloseFailure, err.Error())
				}
			}()
			if _, err := socket.Next(ctx); err == nil {
				t.Error("a message came")
			}
		})
		defer stop()
		conn := dialSocket(t, over, func(*websocket.Conn) bool { return false })
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := conn.Read(within); websocket.CloseStatus(err) != websocket.StatusInternalError {
			t.Errorf("got %v", err)
		}
	})
}
