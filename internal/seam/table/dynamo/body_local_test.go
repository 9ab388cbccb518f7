//go:build dynamo

package dynamo_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestLargestBodyComesBack(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	want := &table.Item{Key: key("p", "a"), Body: randomBody(table.MaxBody)}
	wantError(t, tb.Transact(t.Context(), table.Put{Item: *want}), nil)
	got, err := tb.Get(t.Context(), want.Key)
	check.Must(t, err)
	if !bytes.Equal(got.Body, want.Body) {
		t.Error("got another body than was put")
	}
}

// TestBodiesThatNothingRefersToAreDeleted replaces bodies in every way, and looks at the items
// that are left in the table.
func TestBodiesThatNothingRefersToAreDeleted(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	a, b := key("p", "a"), key("p", "b")
	large := randomBody(2*dynamo.ChunkSize + 1)
	for _, step := range []struct {
		name   string
		write  table.Write
		chunks int
	}{
		{"put", table.Put{Item: table.Item{Key: a, Body: large}}, 3},
		{"attributes changed", table.Update{Key: a, Set: table.Attrs{"n": int64(1)}}, 3},
		{"put over", table.Put{Item: table.Item{Key: a, Body: large[:dynamo.ChunkSize]}}, 1},
		{"updated", table.Update{Key: a, Body: large}, 3},
		{"updated to a small one", table.Update{Key: a, Body: []byte("x")}, 0},
		{"updated to a large one", table.Update{Key: a, Body: large}, 3},
		{"updated to none", table.Update{Key: a, Body: []byte{}}, 0},
		{"another", table.Put{Item: table.Item{Key: b, Body: large}}, 3},
		{"deleted", table.Delete{Key: b}, 0},
		{"refused", table.Put{Item: table.Item{Key: b, Body: large}, If: table.Present()}, 0},
		{"cannot be added to", table.Update{Key: a, Body: large, Set: table.Attrs{"text": "x"}, Add: map[string]int64{"n": 1 << 62}}, 3},
		{"cannot be added to again", table.Update{Key: a, Body: large, Add: map[string]int64{"n": 1 << 62}}, 3},
	} {
		if err := tb.Transact(t.Context(), step.write); (err != nil) != (step.name == "refused" || step.name == "cannot be added to again") {
			t.Fatalf("%s: got error %v", step.name, err)
		}
		wantLeft(t, tb, step.name, step.chunks, 0)
	}
}

// TestManyLargeBodiesInOneTransaction: as many as a transaction holds, twice, so that each
// body replaces another.
func TestManyLargeBodiesInOneTransaction(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	for round := range 2 {
		var writes []table.Write
		for i := range table.MaxWrites {
			writes = append(writes, table.Put{Item: table.Item{Key: key("p", fmt.Sprint(i)), Body: randomBody(dynamo.InlineBody + 1 + round)}})
		}
		wantError(t, tb.Transact(t.Context(), writes...), nil)
		wantLeft(t, tb, fmt.Sprint("round ", round), table.MaxWrites, 0)
	}
}

// TestErasedBodiesLeaveNothing erases items with large and with small bodies together.
func TestErasedBodiesLeaveNothing(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	var gone []table.Key
	for i := range 30 {
		item := table.Item{Key: key("p", fmt.Sprint(i)), Body: randomBody(1 + i%3*dynamo.ChunkSize)}
		wantError(t, tb.Transact(t.Context(), table.Put{Item: item}), nil)
		gone = append(gone, item.Key)
	}
	wantLeft(t, tb, "put", 10*2+10*3, 0)
	wantError(t, tb.Delete(t.Context(), gone...), nil)
	wantLeft(t, tb, "erased", 0, 0)
}

// TestUpdateOfAttributesLeavesTheBodyAlone looks at the requests that are sent.
func TestUpdateOfAttributesLeavesTheBodyAlone(t *testing.T) {
	t.Parallel()
	network := &recorder{}
	tb := openLocal(t, network)
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a"), Body: randomBody(5 << 20)}}), nil)
	network.sent.Store(0)
	wantError(t, tb.Transact(t.Context(), table.Update{Key: key("p", "a"), Set: table.Attrs{"n": int64(1)}}), nil)
	if got := network.sent.Load(); got > 2000 {
		t.Errorf("got %d bytes sent for an attribute, want less than 2,000", got)
	}
}

type recorder struct{ sent atomic.Int64 }

func (r *recorder) Do(request *http.Request) (*http.Response, error) {
	r.sent.Add(request.ContentLength)
	return local.http.Do(request)
}

// TestReadersSeeWholeBodiesWhileTheyAreReplaced reads by every method. Each body consists of
// one letter.
func TestReadersSeeWholeBodiesWhileTheyAreReplaced(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	a := key("p", "a")
	put := func(n int) {
		body := bytes.Repeat([]byte{byte('a' + n%26)}, dynamo.ChunkSize+1+n)
		index := map[table.Index]table.Key{table.ByList: key("l", "a")}
		wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: a, Body: body, Index: index}}), nil)
	}
	put(0)
	var done atomic.Bool
	var writing sync.WaitGroup
	writing.Go(func() {
		defer done.Store(true)
		for n := range 60 {
			put(n)
		}
	})
	for !done.Load() {
		got, err := tb.Get(t.Context(), a)
		wantWhole(t, err, got)
		items, err := tb.GetBatch(t.Context(), a)
		wantWhole(t, err, items...)
		for _, index := range []table.Query{{PK: "p"}, {Index: table.ByList, PK: "l"}} {
			page, err := tb.Query(t.Context(), index)
			wantWhole(t, err, page.Items...)
		}
	}
	writing.Wait()
}

func wantWhole(t *testing.T, err error, items ...*table.Item) {
	t.Helper()
	if err != nil || len(items) != 1 {
		t.Fatalf("got %d items and error %v, want one", len(items), err)
	}
	body := items[0].Body
	if want := dynamo.ChunkSize + 1; len(body) < want || !bytes.Equal(body, bytes.Repeat(body[:1], len(body))) {
		t.Fatalf("got %d bytes that are not of one body", len(body))
	}
}

// TestSweepDeletesWhatADeadProcessLeft cuts the process off before its transaction, and after
// the transaction but before the deletion of replaced bodies.
func TestSweepDeletesWhatADeadProcessLeft(t *testing.T) {
	t.Parallel()
	large := randomBody(dynamo.ChunkSize + 1)
	put := table.Put{Item: table.Item{Key: key("p", "a"), Body: large}}
	for _, c := range []struct {
		name   string
		dies   func(operation string) bool
		before []table.Write
		failed bool
		left   int
		after  int
	}{
		{name: "before its transaction", dies: atTransaction, failed: true, left: 2},
		{name: "before it deleted what it replaced", dies: afterTransaction(), before: []table.Write{put}, left: 4, after: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			network := &mortal{}
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			tb := openLocal(t, network, dynamo.WithClock(func() time.Time { return now }))
			for _, w := range c.before {
				wantError(t, tb.Transact(t.Context(), w), nil)
			}
			network.dies.Store(&c.dies)
			if err := tb.Transact(t.Context(), put); (err != nil) != c.failed {
				t.Fatalf("got error %v", err)
			}
			network.dies.Store(nil)
			wantLeft(t, tb, "dead", c.left, 1)
			for range dynamo.SweepTurns {
				now = now.Add(time.Minute)
				wantError(t, tb.Sweep(t.Context(), time.Hour), nil)
			}
			wantLeft(t, tb, "too early", c.left, 1)
			for range 2 {
				for range dynamo.SweepTurns {
					now = now.Add(time.Minute)
					wantError(t, tb.Sweep(t.Context(), time.Second), nil)
				}
				wantLeft(t, tb, "swept", c.after, 0)
			}
			if c.after > 0 {
				item, err := tb.Get(t.Context(), put.Item.Key)
				if err != nil || !bytes.Equal(item.Body, large) {
					t.Errorf("got error %v, or another body than was put", err)
				}
			}
		})
	}
}

// TestSweptTransactionFails: a transaction that is so slow that its bodies were swept must not
// be applied without them.
func TestSweptTransactionFails(t *testing.T) {
	t.Parallel()
	network := &mortal{}
	tb := openLocal(t, network)
	now := clock.System().Add(time.Hour)
	sweeper := dynamo.Open(configure(local.http), tb.Name(), dynamo.WithClock(func() time.Time { return now }))
	sweep := func(operation string) bool {
		if operation == "TransactWriteItems" {
			for range dynamo.SweepTurns {
				now = now.Add(time.Minute)
				wantError(t, sweeper.Sweep(t.Context(), time.Minute), nil)
			}
		}
		return false
	}
	network.dies.Store(&sweep)
	if err := tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a"), Body: randomBody(dynamo.ChunkSize)}}); err == nil {
		t.Error("got no error, want one")
	}
	_, err := tb.Get(t.Context(), key("p", "a"))
	wantError(t, err, table.ErrNotFound)
	wantLeft(t, tb, "swept", 0, 0)
}

// TestChunksExpireWithTheirItem: also when the item's expiry becomes known only while the item
// is updated.
func TestChunksExpireWithTheirItem(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	expires := clock.System().Add(time.Hour).Truncate(time.Second)
	large := randomBody(dynamo.ChunkSize + 1)
	want := fmt.Sprint(expires.Add(time.Hour).Unix())
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "put"), Body: large, Expires: expires}}), nil)
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "updated"), Expires: expires}}), nil)
	wantError(t, tb.Transact(t.Context(), table.Update{Key: key("p", "updated"), Body: large}), nil)
	chunks := 0
	for _, item := range scan(t, tb) {
		if !isChunk(item) {
			continue
		}
		chunks++
		if got, ok := item["expires"].(*types.AttributeValueMemberN); !ok || got.Value != want {
			t.Errorf("got a chunk that expires at %v, want %s", item["expires"], want)
		}
	}
	if chunks != 4 {
		t.Errorf("got %d chunks, want 4", chunks)
	}
}

func atTransaction(operation string) bool { return operation == "TransactWriteItems" }

// afterTransaction lets one transaction through, and no request after it.
func afterTransaction() func(operation string) bool {
	var applied atomic.Bool
	return func(operation string) bool {
		if operation == "TransactWriteItems" {
			applied.Store(true)
			return false
		}
		return applied.Load()
	}
}

// mortal is the network of a process that dies at a request: neither this request nor any
// later one arrives.
type mortal struct {
	dies atomic.Pointer[func(operation string) bool]
}

func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if dies := m.dies.Load(); dies != nil && (*dies)(operation) {
		return refuse(http.StatusBadRequest, "AccessDeniedException")()
	}
	return local.http.Do(r)
}

// wantLeft counts the chunks and claims in the table.
func wantLeft(t *testing.T, tb *dynamo.Table, when string, chunks, claims int) {
	t.Helper()
	gotChunks, gotClaims := 0, 0
	for _, item := range scan(t, tb) {
		switch {
		case isChunk(item):
			gotChunks++
		case item["bodies"] != nil:
			gotClaims++
		}
	}
	if gotChunks != chunks || gotClaims != claims {
		t.Errorf("%s: got %d chunks and %d claims, want %d and %d", when, gotChunks, gotClaims, chunks, claims)
	}
}

func isChunk(item map[string]types.AttributeValue) bool {
	sk, ok := item["sk"].(*types.AttributeValueMemberS)
	return ok && sk.Value == "CHUNK"
}

func scan(t *testing.T, tb *dynamo.Table) []map[string]types.AttributeValue {
	t.Helper()
	cfg := configure(local.http)
	// DynamoDB Local closes a connection after it was idle for 30 s, which may be the moment at
	// which it is used again. The transport sends no body of the SDK a second time.
	cfg.RetryMaxAttempts = retry.DefaultMaxAttempts
	client := dynamodb.NewFromConfig(cfg)
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: aws.String(tb.Name()), ConsistentRead: aws.Bool(true)})
	var items []map[string]types.AttributeValue
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		check.Must(t, err)
		items = append(items, page.Items...)
	}
	return items
}

func randomBody(size int) []byte {
	body := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := random.Read(body); err != nil {
		panic(err) // it never fails
	}
	return body
}
