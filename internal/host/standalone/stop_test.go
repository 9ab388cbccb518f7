package standalone_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAListenerThatNeverAnswersKeepsNoServer stops a server while a rollout waits for the
// release that the listener was told to run.
func TestAListenerThatNeverAnswersKeepsNoServer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := clientOf(credentials)
	listener := c.call(t, http.StatusCreated, "POST", "/v2/listeners", object{
		"compute_type": "k8s", "compute_id": "cluster", "compute_config": object{"k8s_namespaces": []string{"agents"}},
	})["id"]
	c.call(t, http.StatusCreated, "POST", "/v2/deployments", object{
		"name": "elsewhere", "source": "external_docker", "secrets": []any{}, "source_config": object{"listener_id": listener},
		"source_revision_config": object{"image_uri": "registry.example.com/agent:1"},
	})
	claim := object{"holder": "a", "wait": 20}
	for work := []any(nil); len(work) == 0; {
		work, _ = c.call(t, http.StatusOK, "POST", "/v2/listeners/"+listener.(string)+"/claim", claim)["work"].([]any)
	}
	stop()
	if text := log.String(); !strings.Contains(text, "msg=stopping") || strings.Contains(text, "cut off") {
		t.Errorf("the server has waited as long as it may:\n%s", text)
	}
}

// stuck is a log whose writers wait after a message, until they are released.
type stuck struct {
	slog.Handler

	message string
	reached func()
	release chan struct{}
}

func (s stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == s.message {
		s.reached()
		<-s.release
	}
	return s.Handler.Handle(ctx, r)
}

// TestATimerThatDoesNotEndKeepsNoServer stops a server whose timer of crons is stuck.
func TestATimerThatDoesNotEndKeepsNoServer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, stop := serveWith(t, standalone.Config{Data: data, Log: slog.New(slog.DiscardHandler)})
	stop()
	records := open(t, data)
	unreadable := table.Item{
		Key: table.Key{PK: "no", SK: "cron"}, Index: map[table.Index]table.Key{table.ByDue: keys.DueCrons.At("none", time.Unix(0, 0))},
	}
	check.Must(t, errors.Join(records.Transact(t.Context(), table.Put{Item: unreadable}), records.Close()))
	isStuck, release := make(chan struct{}), make(chan struct{})
	log := stuck{slog.DiscardHandler, "fire crons", sync.OnceFunc(func() { close(isStuck) }), release}
	_, stop = serveWith(t, standalone.Config{Data: data, Log: slog.New(log)})
	<-isStuck
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
		close(release)
	case <-time.After(time.Minute):
		t.Error("the server waits for its timer")
		close(release)
		<-stopped
	}
}
