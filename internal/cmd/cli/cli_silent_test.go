package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/test/check"
)

// silence answers with heartbeats only for longer than a client goes on without an answer, then
// loses the connection. The request after that gets the events.
type silence struct {
	requests int
	events   string
}

func (s *silence) RoundTrip(*http.Request) (*http.Response, error) {
	s.requests++
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.events))}
	if s.requests > 1 {
		return answer, nil
	}
	body, w := io.Pipe()
	go func() {
		for range 10 {
			time.Sleep(reconnectLimit / 5)
			fmt.Fprint(w, ": heartbeat\n\n")
		}
		w.CloseWithError(errors.New("the connection is lost"))
	}()
	answer.Body = body
	return answer, nil
}

// TestASilentStreamIsTakenUpAgain after a time in which nothing was to be told.
func TestASilentStreamIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events string
		follow func(t *testing.T, server *client.Client, out io.Writer) error
	}{
		"logs -f": {
			"id: 1\nevent: log\ndata: {\"id\":\"1\",\"message\":\"hello\"}\n\nevent: end\ndata: {}\n\n",
			func(t *testing.T, server *client.Client, out io.Writer) error {
				l := &logReader{api: &api{Client: server}, stdout: out, stderr: io.Discard}
				return l.follow(t.Context())
			},
		},
		"chat": {
			"event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"hello\"},{}]\n\n",
			func(t *testing.T, server *client.Client, out io.Writer) error {
				a := &agent{api: &api{Client: server}}
				return a.run("thread", "run").listen(t.Context(), func(part client.Part) { fmt.Fprintln(out, part.Token) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, out := &silence{events: c.events}, new(bytes.Buffer)
				check.Must(t, c.follow(t, client.Over(server, client.Server{URL: "http://server.test"}), out))
				if server.requests != 2 || out.String() != "hello\n" {
					t.Errorf("after %d requests, got %q", server.requests, out)
				}
			})
		})
	}
}
