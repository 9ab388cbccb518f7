package dynamodb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/test/template"
)

// LagConfig names the table whose indexes are behind, and says how far they are behind.
type LagConfig struct {
	// Client reaches the DynamoDB Local at Endpoint.
	Client   *dynamodb.Client
	Endpoint string
	// Table is the name of a table that exists, Declared is its declaration in the template.
	Table    string
	Declared template.Table
	// Lag is how long a write takes to reach the indexes.
	Lag time.Duration
	Log *slog.Logger
}

// Lagging is a DynamoDB whose indexes are behind its writes, like the indexes of the service;
// the indexes of DynamoDB Local are never behind. It stands in front of DynamoDB Local and
// keeps a second table, which follows the first table after the lag: reads of indexes are
// answered from the second table, all other reads from the first table.
type Lagging struct {
	config LagConfig
	behind string
	proxy  http.Handler
	// locks keep the reads of one item in the order in which the second table follows them.
	locks [64]sync.Mutex
	seed  maphash.Seed

	mu sync.Mutex
	// indexed holds the items that the second table has, or will have.
	indexed map[string]bool
	changes []change
	// more gets a signal when the list of changes is no longer empty.
	more chan struct{}
	end  context.CancelFunc
	done chan struct{}
}

// change is the state of an item from a time on, for readers of the indexes. If it has no
// attributes, the item is deleted.
type change struct {
	at   time.Time
	name string
	key  item
	item item
}

// NewLagging makes the second table from the present state of the first table. The caller
// closes it.
func NewLagging(ctx context.Context, config LagConfig) (*Lagging, error) {
	target, err := url.Parse(config.Endpoint)
	if err != nil {
		return nil, err
	}
	l := &Lagging{
		config: config, behind: config.Table + "-behind", seed: maphash.MakeSeed(), indexed: map[string]bool{},
		more: make(chan struct{}, 1), done: make(chan struct{}),
		proxy: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			FlushInterval: -1, // a client has its answer before the write is noted
			Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
			// These are errors of clients that disconnect.
			ErrorLog: slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
		},
	}
	if err := l.copyAll(ctx); err != nil {
		return nil, fmt.Errorf("copy table %s: %w", config.Table, err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end = end
	go l.follow(running)
	return l, nil
}

// Close stops following. Writes that have not reached the second table are in it after the
// next start.
func (l *Lagging) Close() {
	l.end()
	<-l.done
}

// ServeHTTP answers a request of DynamoDB's own protocol.
func (l *Lagging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var written []key
	switch operation {
	case "Query", "Scan":
		body, err = l.redirect(body)
	case "TransactWriteItems", "BatchWriteItem", "PutItem", "UpdateItem", "DeleteItem":
		written, err = l.written(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	l.proxy.ServeHTTP(w, r)
	// Items that a failed write left unchanged are read, too; a client that has disconnected
	// may have written.
	ctx := context.WithoutCancel(r.Context())
	for _, k := range written {
		if err := l.note(ctx, k); err != nil && !errors.Is(err, context.Canceled) {
			l.config.Log.ErrorContext(ctx, "a write will not reach the indexes", "key", k.name, "error", err)
		}
	}
}

// redirect sends a read of an index to the second table.
func (l *Lagging) redirect(body []byte) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	var table string
	if err := json.Unmarshal(members["TableName"], &table); err != nil {
		return nil, err
	}
	if members["IndexName"] == nil || table != l.config.Table {
		return body, nil
	}
	name, err := json.Marshal(l.behind)
	if err != nil {
		return nil, err
	}
	members["TableName"] = name
	return json.Marshal(members)
}

// note reads an item that may have changed, and makes the second table follow.
func (l *Lagging) note(ctx context.Context, k key) error {
	lock := &l.locks[maphash.String(l.seed, k.name)%uint64(len(l.locks))]
	lock.Lock()
	defer lock.Unlock()
	l.mu.Lock()
	known := l.indexed[k.name]
	l.mu.Unlock()
	if !known && k.unindexed {
		return nil
	}
	found, err := l.config.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &l.config.Table, Key: k.key, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return err
	}
	now := found.Item
	if !l.isIndexed(now) {
		now = nil
	}
	if now == nil && !known {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.indexed[k.name] = now != nil
	l.changes = append(l.changes, change{at: time.Now().Add(l.config.Lag), name: k.name, key: k.key, item: now})
	if len(l.changes) == 1 {
		select {
		case l.more <- struct{}{}:
		default:
		}
	}
	return nil
}

// isIndexed reports whether an item is in an index.
func (l *Lagging) isIndexed(of item) bool {
	return slices.ContainsFunc(l.config.Declared.Indexes, func(index template.Index) bool {
		return len(index.Key) > 0 && of[index.Key[0].Name] != nil
	})
}

// follow applies changes to the second table when their time has come.
func (l *Lagging) follow(ctx context.Context) {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.more:
		case <-timer.C:
		}
		due, next := l.take(time.Now())
		if err := l.write(ctx, due); err != nil && ctx.Err() == nil {
			l.config.Log.ErrorContext(ctx, "writes do not reach the indexes", "table", l.behind, "error", err)
		}
		if next != (time.Time{}) {
			timer.Reset(time.Until(next))
		}
	}
}

// take removes and returns the due changes, the last change of each item, and returns when the
// next changes are due.
func (l *Lagging) take(now time.Time) (due map[string]change, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due = map[string]change{}
	n := 0
	for ; n < len(l.changes) && !l.changes[n].at.After(now); n++ {
		due[l.changes[n].name] = l.changes[n]
	}
	l.changes = slices.Delete(l.changes, 0, n)
	if len(l.changes) > 0 {
		next = l.changes[0].at
	}
	return due, next
}
