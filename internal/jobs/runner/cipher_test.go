package runner_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/jobs/runner"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// TestAttackAnEncryptionThatAnswersWrongly has agents that answer with too much, in another shape,
// with a failure, not at all, and that do not start.
func TestAttackAnEncryptionThatAnswersWrongly(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	text := base64.StdEncoding.EncodeToString([]byte(secret))
	large := `{"values": ["` + strings.Repeat("QUFB", 2<<20) + `"]}`
	tight := func() *budget.Hold {
		return budget.NewHold(budget.New(1<<20), 0, -1, fault.New(fault.Unavailable, "There is no room."))
	}
	for name, c := range map[string]struct {
		status  int
		answer  string
		hangs   bool
		absent  bool
		held    *budget.Hold
		message string
	}{
		"too much, without a Hold": {200, large, false, false, nil, "The answer of the repository's own encryption is too large."},
		"too much, with a Hold":    {200, large, false, false, tight(), "There is no room."},
		"another shape":            {200, `{"values": ["` + text + `", 1]}`, false, false, nil, "The repository's own encryption has failed, or does not answer."},
		"a failure":                {500, `{"detail": "RuntimeError"}`, false, false, nil, "The repository's own encryption has failed, or does not answer."},
		"hangs":                    {200, "", true, false, nil, ""},
		"does not start":           {200, "", false, true, nil, "The agent does not answer at the moment."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, _ = io.Copy(io.Discard, r.Body); c.hangs {
					<-r.Context().Done()
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer agent.Close()
			target := &deployed{acquire: func(ctx context.Context) (compute.Endpoint, error) {
				if c.absent {
					<-ctx.Done()
					return compute.Endpoint{}, context.Cause(ctx)
				}
				return compute.Endpoint{URL: agent.URL}, nil
			}}
			var log bytes.Buffer
			agents := &runner.Agents{
				Deployments: target, Target: func(context.Context) (compute.Target, error) { return target, nil }, Graph: graph.NewClient(nil),
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}
			ctx := t.Context()
			if c.held != nil {
				defer c.held.Close()
				ctx = budget.Holding(ctx, c.held)
			}
			if c.hangs || c.absent {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			_, err := agents.Cipher(ctx, "w", "d", graph.OperationDecrypt, graph.Encryption{Values: []graph.EncryptedValue{{Data: []byte("x")}}})
			switch {
			case c.message == "" && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("got %v", err)
			case c.message != "" && (!fault.Is(err, fault.Unavailable) || err.Error() != c.message):
				t.Errorf("got %v, want %s", err, c.message)
			}
			if strings.Contains(log.String(), secret) || strings.Contains(log.String(), text) {
				t.Errorf("the log has the plaintext: %s", log.String())
			}
		})
	}
}
