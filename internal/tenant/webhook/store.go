package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

const (
	// timeout bounds one attempt.
	timeout = 15 * time.Second
	// maxAnswer is how much of an answer is read, in bytes. The body is not kept.
	maxAnswer = 16 << 10
	// disableAfter is how long a webhook may fail without one success in between.
	disableAfter = 5 * 24 * time.Hour
	// overlap is how long a replaced secret continues to sign.
	overlap = 24 * time.Hour
)

// schedule is the pause between each failed attempt and the next attempt.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

// Config holds the dependencies and settings of a Store.
type Config struct {
	Table    table.Table
	Workflow workflow.Engine
	Sealer   secret.Sealer
	Now      clock.Clock
	// Log gets errors that do not make a request fail; the default is slog's. It never gets an
	// address or a secret.
	Log *slog.Logger
	// Private are the networks that are not public but may contain addresses of webhooks.
	Private outbound.Networks
	// Quotas bound how many webhooks a workspace may have.
	Quotas quota.Limits
	// Timeout bounds one attempt; 0 is 15 s.
	Timeout time.Duration
	// Places has the workspaces' places for streams, of which an attempt takes one that lasts for
	// Patience, by default quota.Patience; nil if attempts take none.
	Places   Places
	Patience time.Duration
	// Own returns the rules and headers of the deployment that a Message is about; nil if messages
	// have no rules. It may fail with a Refusal.
	Own func(ctx context.Context, workspace, deployment string) (Own, error)
	// Schedule is the pause between each failed attempt and the next attempt; nil means 27
	// hours with growing pauses.
	Schedule []time.Duration
}

// Places are the places of workspaces for streams; see quota.Shared.
type Places interface {
	Hold(ctx context.Context, workspace, deployment, thread string) (leave func(), err error)
}

// Store reads and writes webhooks and deliveries, and makes the attempts. It is safe for concurrent
// use.
type Store struct {
	Config

	// client reaches the permitted addresses, remote those of them that are not the machine
	// itself, and public only public addresses.
	client, remote, public *http.Client
}

// NewStore returns a store. It starts nothing.
func NewStore(c Config) *Store {
	c.Log, c.Timeout, c.Patience = cmp.Or(c.Log, slog.Default()), cmp.Or(c.Timeout, timeout), cmp.Or(c.Patience, quota.Patience)
	if c.Schedule == nil {
		c.Schedule = schedule
	}
	client := func(private outbound.Networks) *http.Client {
		return outbound.NewClient(outbound.Limits{Private: private, Timeout: c.Timeout, MaxAnswer: maxAnswer})
	}
	return &Store{Config: c, client: client(c.Private), remote: client(c.Private.WithoutLoopback()), public: client(nil)}
}

// CheckURL returns a fault.Invalid unless messages may be sent to the URL, which is the value
// of the field.
func (s *Store) CheckURL(field, raw string) error {
	return outbound.CheckURL(field, raw, s.Private)
}

// later returns the time of the attempt that follows the given number of failed attempts; ok
// is false if there is no further attempt. The pause is up to a fifth shorter or longer, so
// that deliveries that failed together are not repeated together.
func (s *Store) later(now time.Time, failed int) (_ time.Time, ok bool) {
	if failed > len(s.Schedule) {
		return time.Time{}, false
	}
	pause := s.Schedule[failed-1]
	return clock.Cut(now.Add(pause*4/5 + rand.N(pause*2/5+1))), true
}
