//go:build dynamo

package dynamo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/seam/table/tabletest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// faulty is a network with many faults: it produces the answers that DynamoDB Local never
// gives.
type faulty struct {
	// percent of the requests meet a fault.
	percent int

	mu     sync.Mutex
	random *rand.Rand
	met    map[string]bool
}

func newFaulty(percent int) *faulty {
	return &faulty{percent: percent, random: rand.New(rand.NewPCG(1, 2)), met: make(map[string]bool)}
}

// Do answers a request, as DynamoDB Local does or with a fault.
func (f *faulty) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	fault := f.choose(operation)
	switch fault {
	case "lost request":
		return lost()
	case "conflict":
		return cancel(because("TransactionConflict"))()
	case "throttled transaction":
		return cancel(because("None"), because("ThrottlingError"))()
	case "throttled":
		return refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException")()
	case "limit":
		return refuse(http.StatusBadRequest, "RequestLimitExceeded")()
	case "failure":
		return refuse(http.StatusInternalServerError, "InternalServerError")()
	case "left out":
		return leaveOut(r, operation)
	}
	answer, err := local.http.Do(r)
	if err != nil || fault == "" {
		return answer, err
	}
	// The request was applied, but the caller gets no answer.
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	switch fault {
	case "torn answer":
		return torn()
	case "failure afterwards":
		return refuse(http.StatusInternalServerError, "InternalServerError")()
	}
	return lost()
}

// choose returns the fault that a request meets, "" for no fault.
func (f *faulty) choose(operation string) string {
	faults := []string{"lost request", "throttled", "limit", "failure", "lost answer", "torn answer", "failure afterwards"}
	switch operation {
	case "TransactWriteItems":
		faults = append(faults, "conflict", "throttled transaction", "lost answer", "lost answer")
	case "BatchGetItem", "BatchWriteItem":
		faults = append(faults, "left out", "left out", "left out", "left out")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random.IntN(100) >= f.percent {
		return ""
	}
	fault := faults[f.random.IntN(len(faults))]
	f.met[fault] = true
	return fault
}

// leaveOut lets the first half of a batch through, and reports the rest as not processed.
func leaveOut(r *http.Request, operation string) (*http.Response, error) {
	var asked struct {
		RequestItems map[string]json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	left := make(map[string]any)
	for name, raw := range asked.RequestItems {
		if operation == "BatchWriteItem" {
			var writes []json.RawMessage
			if err := json.Unmarshal(raw, &writes); err != nil {
				return nil, err
			}
			half := len(writes) / 2
			left[name] = writes[half:]
			asked.RequestItems[name] = encode(writes[:half])
			if half == 0 {
				return leftOut(`{"UnprocessedItems":` + string(encode(left)) + `}`)
			}
			continue
		}
		var keys struct {
			ConsistentRead bool
			Keys           []json.RawMessage
		}
		if err := json.Unmarshal(raw, &keys); err != nil {
			return nil, err
		}
		half := len(keys.Keys) / 2
		rest := keys
		rest.Keys, keys.Keys = keys.Keys[half:], keys.Keys[:half]
		left[name], asked.RequestItems[name] = rest, encode(keys)
		if half == 0 {
			return leftOut(`{"Responses":{},"UnprocessedKeys":` + string(encode(left)) + `}`)
		}
	}
	body := encode(asked)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer, err := local.http.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	return name(answer, operation, left)
}

// name adds the part of the batch that was left out to an answer.
func name(answer *http.Response, operation string, left map[string]any) (*http.Response, error) {
	var members map[string]json.RawMessage
	if err := json.NewDecoder(answer.Body).Decode(&members); err != nil {
		return nil, err
	}
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	if operation == "BatchWriteItem" {
		members["UnprocessedItems"] = encode(left)
	} else {
		members["UnprocessedKeys"] = encode(left)
	}
	return leftOut(string(encode(members)))
}

func leftOut(body string) (*http.Response, error) { return reply(http.StatusOK, body)() }

func encode(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return body
}

// TestConformanceOnAFaultyNetwork: whatever goes wrong on the network, callers see a table
// that keeps its promises.
func TestConformanceOnAFaultyNetwork(t *testing.T) {
	t.Parallel()
	network := newFaulty(10)
	tabletest.Run(t, func(t *testing.T, dir string, now clock.Clock) (table.Table, func() error) {
		t.Helper()
		create(t, tableName(dir))
		tb := dynamo.Open(configure(network), tableName(dir), dynamo.WithClock(now))
		return tb, tb.Close
	})
}

// TestFaultsLoseAndDoubleNothing counts while every third request meets a fault.
func TestFaultsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, newFaulty(33))
	const writers, times = 4, 25
	total, claimed := key("p", "total"), atomic.Int64{}
	wantError(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: total}}), nil)
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for n := range times {
				wantError(t, tb.Transact(t.Context(), table.Update{Key: total, Add: map[string]int64{"n": 1}}), nil)
				name := table.Put{Item: table.Item{Key: key("names", string(rune('a'+n)))}, If: table.Absent()}
				if tb.Transact(t.Context(), name) == nil {
					claimed.Add(1)
				}
			}
		})
	}
	running.Wait()
	item, err := tb.Get(t.Context(), total)
	check.Must(t, err)
	if got := item.Int("n"); got != writers*times {
		t.Errorf("got a count of %d, want %d", got, writers*times)
	}
	if got := claimed.Load(); got != times {
		t.Errorf("got %d winners of %d names, want one each", got, times)
	}
}

// TestBodiesOnAFaultyNetwork replaces and reads large bodies while every third request meets a
// fault.
func TestBodiesOnAFaultyNetwork(t *testing.T) {
	t.Parallel()
	network := newFaulty(33)
	tb := openLocal(t, network)
	for n := range 40 {
		want := table.Item{Key: key("p", string(rune('a'+n%4))), Body: bytes.Repeat([]byte{byte(n)}, 2*dynamo.ChunkSize+n)}
		wantError(t, tb.Transact(t.Context(), table.Put{Item: want}), nil)
		got, err := tb.Get(t.Context(), want.Key)
		if err != nil || !bytes.Equal(got.Body, want.Body) {
			t.Fatalf("put %d: got error %v, or another body than was put", n, err)
		}
	}
	wantLeft(t, tb, "at the end", 4*3, 0)
	if len(network.met) != 10 {
		t.Errorf("met the faults %v, want all of them", network.met)
	}
}
