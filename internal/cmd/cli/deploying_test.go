package cli

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAFileOfSecretsStaysHere checks that a deployment says which variables of the .env file the
// agent would miss.
func TestAFileOfSecretsStaysHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("PASSED=1\nKEPT=2\nMISSED=3\n"), 0o600))
	for _, kept := range [][]secret{{{Name: "KEPT"}}, {{Name: "KEPT"}, {Name: "MISSED"}}} {
		var said []string
		d := &deploying{
			plan:       plan{deployOptions: deployOptions{dir: dir, dry: true}, values: []secret{{Name: "PASSED"}}},
			deployment: deployment{Secrets: kept},
			show: func(event output.Event) {
				if strings.Contains(event.Text, "is not uploaded") {
					said = append(said, event.Text)
				}
			},
		}
		if _, err := d.revise(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		missed := len(kept) == 1
		if missed != (len(said) == 1) || missed && !strings.Contains(said[0], "has no MISSED;") {
			t.Errorf("with %d secrets: said %q", len(kept), said)
		}
	}
}

// uploads grants uploads to another server, which answers as put says, at most 1000 times.
type uploads struct {
	tries int
	put   func() (*http.Response, error)
}

func (u *uploads) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut {
		if u.tries++; u.tries > 1000 {
			return answerOf(http.StatusOK, ""), nil
		}
		return u.put()
	}
	return answerOf(http.StatusOK, `{"upload_url":"https://storage.test/v1/upload","object_path":"uploads/1"}`), nil
}

func answerOf(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestAnUploadIsGivenUp although the server grants each new one. The error names the server that
// does not take uploads.
func TestAnUploadIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func() (*http.Response, error)
		want string
		most time.Duration
	}{
		"unreachable": {
			func() (*http.Response, error) { return nil, errors.New("no such host") },
			"no server answers at https://storage.test (no such host)", firstTries * reconnectPause,
		},
		"overloaded": {
			func() (*http.Response, error) {
				return answerOf(http.StatusServiceUnavailable, `{"detail":"Too busy."}`), nil
			},
			"PUT /v1/upload: 503 Service Unavailable: Too busy.", reconnectLimit + reconnectPause,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, server := time.Now(), &uploads{put: c.put}
				d := &deploying{api: &api{Client: client.Over(server, client.Server{URL: "http://server.test"})}}
				_, err := d.upload(t.Context(), &tarball{})
				if took := time.Since(began); err == nil || !strings.Contains(err.Error(), c.want) || server.tries < firstTries || took > c.most {
					t.Errorf("after %s and %d tries, got %v", took, server.tries, err)
				}
			})
		})
	}
}
