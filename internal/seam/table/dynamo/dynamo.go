package dynamo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Table is a table.Table in a DynamoDB table. Make one with Open.
type Table struct {
	client   *dynamodb.Client
	name     string
	now      clock.Clock
	log      *slog.Logger
	patience time.Duration
	watchers *table.Watchers

	looks    *looks
	polls    sync.WaitGroup
	open     context.Context
	endPolls context.CancelFunc
}

var _ table.Table = (*Table)(nil)

// Option changes how a table is opened.
type Option func(*Table)

// WithClock sets the clock that decides which items have expired; the default is the machine's.
func WithClock(now clock.Clock) Option { return func(t *Table) { t.now = now } }

// WithLogger sets the log for errors that are returned to no caller (errors of polling and of
// deleting replaced bodies). The default is slog's.
func WithLogger(log *slog.Logger) Option { return func(t *Table) { t.log = log } }

// Open returns the table of that name. It sends no request. If the table does not exist, the
// first call fails.
func Open(cfg aws.Config, name string, opts ...Option) *Table {
	t := &Table{name: name, now: clock.System, log: slog.Default(), looks: newLooks()}
	for _, opt := range opts {
		opt(t)
	}
	t.client = newClient(cfg, t.patience)
	t.watchers = table.NewWatchers(t.startPoll)
	t.open, t.endPolls = context.WithCancel(context.Background())
	return t
}

// Close ends the polling for watchers. From then on they are woken only by transactions of
// this process.
func (t *Table) Close() error {
	t.endPolls()
	t.polls.Wait()
	return nil
}

// seconds is the time with which expiry is compared.
func (t *Table) seconds() int64 { return t.now().Unix() }
