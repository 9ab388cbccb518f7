package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/test/check"
)

// asked answers each question of a chat with nothing, and keeps the questions.
type asked []string

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost {
		var run struct {
			Input struct {
				Messages []struct{ Content string }
			}
		}
		if err := json.NewDecoder(request.Body).Decode(&run); err != nil {
			return nil, err
		}
		*a = append(*a, run.Input.Messages[0].Content)
	}
	body := `{"run_id":"r","status":"success"}`
	if strings.HasSuffix(request.URL.Path, "/stream") {
		body = ""
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestAMessageIsOneQuestion checks this for a message of several lines, while each line of stdin is
// a question of its own.
func TestAMessageIsOneQuestion(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		message, stdin string
		want           asked
	}{
		"a message of several lines": {"review this:\n\n- one\n- two\n", "", asked{"review this:\n\n- one\n- two"}},
		"a long message":             {long, "", asked{long}},
		"lines of stdin":             {"", "one\n\n two \n", asked{"one", "two"}},
		"a long line of stdin":       {"", "one\n" + long + "\ntwo", asked{"one", long, "two"}},
	} {
		var got asked
		chat := &conversation{agent: &agent{api: &api{Client: client.Over(&got, client.Server{URL: "http://server.test"})}}, thread: "t", assistant: "agent"}
		chat.prints(io.Discard, io.Discard, false)
		check.Must(t, chat.script(t.Context(), c.message, strings.NewReader(c.stdin)))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: asked %.40q", name, got)
		}
	}
}
