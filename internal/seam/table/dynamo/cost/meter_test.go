//go:build cost

package cost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// units are the request units that DynamoDB charges for.
type units struct {
	// read is the sum of the table and its indexes. write is the table's part of the writes,
	// index that of its indexes.
	read, write, index float64
}

func (u units) plus(v units) units {
	return units{u.read + v.read, u.write + v.write, u.index + v.index}
}

func (u units) times(n float64) units { return units{u.read * n, u.write * n, u.index * n} }

// charge is one request and its consumption.
type charge struct {
	// what names the request's operation and the kinds of the items that it concerns, not
	// their ids.
	what string
	units
	refused bool
	// call is the trace of the function call that made the request, "" for other requests.
	call string
}

// meter is a proxy in front of DynamoDB Local that notes the consumption of each request.
type meter struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	charges []charge
	pending atomic.Int64
	// deletes counts the items that are deleted.
	deletes atomic.Int64
	// changed is when a request last began or ended, in Unix nanoseconds.
	changed atomic.Int64
}

func newMeter(t *testing.T, endpoint string) *meter {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{t: t}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: m.note,
		Transport:      local.transport,
		ErrorLog:       log.New(io.Discard, "", 0), // errors of clients that hang up
	}
	m.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.pending.Add(1)
		defer func() {
			m.changed.Store(time.Now().UnixNano())
			m.pending.Add(-1)
		}()
		asked, err := m.ask(r)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return // the client has hung up
		}
		if err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, asked)))
	}))
	t.Cleanup(m.server.Close)
	return m
}

// wire is the part of a request that the meter reads.
type wire struct {
	Key, Item                 map[string]text
	ConsistentRead            bool
	IndexName                 string
	ExpressionAttributeValues map[string]text
	TransactItems             []map[string]target
	RequestItems              map[string]json.RawMessage
}

// target is the item that a write of a transaction concerns.
type target struct {
	TableName string
	Key, Item map[string]text
}

func (w target) key() map[string]text {
	if w.Item != nil {
		return map[string]text{"pk": w.Item["pk"], "sk": w.Item["sk"]}
	}
	return w.Key
}

// asked is the information that the meter has about a request when its answer comes.
type asked struct {
	wire

	what  string
	least float64
	// table, keys and before are the state that a transaction finds.
	table  string
	keys   []map[string]text
	before images
}

type askedKey struct{}

// text is an attribute's value. Only texts matter here.
type text struct{ S string }

// ask makes the request ask for its consumption, and notes the items that the request
// concerns.
func (m *meter) ask(r *http.Request) (asked, error) {
	var a asked
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return a, err
	}
	switch operation {
	case "GetItem", "BatchGetItem", "Query", "TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem":
		members := map[string]json.RawMessage{}
		if err := json.Unmarshal(body, &members); err != nil {
			return a, err
		}
		if err := json.Unmarshal(body, &a.wire); err != nil {
			return a, err
		}
		members["ReturnConsumedCapacity"] = json.RawMessage(`"INDEXES"`)
		if body, err = json.Marshal(members); err != nil {
			return a, err
		}
		a.what, a.least = a.about(operation), a.atLeast(operation)
	}
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if operation == "DeleteItem" {
		m.deletes.Add(1)
	}
	if operation == "TransactWriteItems" {
		for _, write := range a.TransactItems {
			if _, ok := write["Delete"]; ok {
				m.deletes.Add(1)
			}
			for _, of := range write {
				a.table, a.keys = of.TableName, append(a.keys, of.key())
			}
		}
		a.before, err = m.look(r, a.table, a.keys)
	}
	return a, err
}

// batch returns the keys of a BatchGetItem, and whether it is a poll: no other read is
// eventually consistent.
func (w wire) batch() (keys []map[string]text, polls bool) {
	for _, raw := range w.RequestItems {
		var of struct {
			Keys           []map[string]text
			ConsistentRead bool
		}
		if json.Unmarshal(raw, &of) == nil {
			return of.Keys, !of.ConsistentRead
		}
	}
	return nil, false
}

// atLeast is the cost of a read that finds nothing.
func (w wire) atLeast(operation string) float64 {
	switch keys, polls := w.batch(); {
	case polls:
		return float64(len(keys)) / 2
	case operation == "BatchGetItem":
		return float64(len(keys))
	case operation == "Query" && w.ConsistentRead:
		return 1
	}
	return 0.5
}

// about describes what a request does to which kinds of items.
func (w wire) about(operation string) string {
	switch operation {
	case "GetItem":
		return "GetItem " + kindOf(w.Key["pk"].S, w.Key["sk"].S)
	case "Query":
		pk, sk := w.ExpressionAttributeValues[":0"].S, w.ExpressionAttributeValues[":1"].S
		if w.IndexName != "" {
			return "Query " + w.IndexName + " " + kindOf(pk, sk)
		}
		return "Query " + kindOf(pk, sk)
	case "TransactWriteItems":
		var writes []string
		for _, item := range w.TransactItems {
			for verb, of := range item {
				key := of.key()
				writes = append(writes, strings.ToLower(verb)+" "+kindOf(key["pk"].S, key["sk"].S))
			}
		}
		return "Transact: " + strings.Join(compact(writes), ", ")
	case "BatchGetItem":
		keys, polls := w.batch()
		if polls {
			operation = "poll"
		}
		var read []string
		for _, key := range keys {
			read = append(read, kindOf(key["pk"].S, key["sk"].S))
		}
		return operation + " " + strings.Join(compact(read), ", ")
	case "PutItem", "UpdateItem", "DeleteItem":
		key := target{Key: w.Key, Item: w.Item}.key()
		return operation + " " + kindOf(key["pk"].S, key["sk"].S)
	}
	return operation
}

// capacity is a ConsumedCapacity.
type capacity struct {
	CapacityUnits          float64
	Table                  struct{ CapacityUnits float64 }
	GlobalSecondaryIndexes map[string]struct{ CapacityUnits float64 }
}

// note reads the consumption from an answer. DynamoDB Local differs from DynamoDB: of the
// writes of a transaction that have equal costs, it counts only one; it doubles the
// transaction's writes to indexes; and it counts nothing for items that a query or a batch
// does not find. So transactions are counted here, by the rules, and other requests are
// corrected.
func (m *meter) note(answer *http.Response) error {
	a, _ := answer.Request.Context().Value(askedKey{}).(asked)
	if a.what == "" {
		return nil
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	c := charge{what: a.what, refused: answer.StatusCode != http.StatusOK, call: answer.Request.Header.Get("X-Amzn-Trace-Id")}
	if a.before != nil {
		err = m.transaction(answer, a, body, &c)
	} else {
		err = c.say(body, a)
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charges = append(m.charges, c)
	return nil
}

// say adds the units that an answer names.
func (c *charge) say(body []byte, a asked) error {
	var said struct{ ConsumedCapacity json.RawMessage }
	if err := json.Unmarshal(body, &said); err != nil {
		return err
	}
	var several []capacity
	if len(said.ConsumedCapacity) > 0 && json.Unmarshal(said.ConsumedCapacity, &several) != nil {
		several = make([]capacity, 1)
		if err := json.Unmarshal(said.ConsumedCapacity, &several[0]); err != nil {
			return err
		}
	}
	for _, one := range several {
		if isRead(a.what) {
			c.read += max(one.CapacityUnits, a.least)
			continue
		}
		c.write += one.Table.CapacityUnits
		for _, index := range one.GlobalSecondaryIndexes {
			c.index += index.CapacityUnits
		}
	}
	return nil
}

// transaction counts the writes of a transaction. A refused transaction costs as much. For a
// single write, the numbers of DynamoDB Local must agree.
func (m *meter) transaction(answer *http.Response, a asked, body []byte, c *charge) error {
	after, err := m.look(answer.Request, a.table, a.keys)
	if err != nil {
		return err
	}
	for _, key := range a.keys {
		u := transacted(a.before[imageKey(key)], after[imageKey(key)])
		if c.refused || checks(a, key) {
			u.index = 0
		}
		c.units = c.plus(u)
	}
	only := imageKey(a.keys[0])
	if len(a.keys) > 1 || c.refused || (a.before[only] == nil && after[only] == nil) {
		// For a write that finds nothing and leaves nothing, DynamoDB Local forgets that it was
		// part of a transaction.
		return nil
	}
	said := charge{}
	if err := said.say(body, a); err != nil {
		return err
	}
	// The run's worker may have changed it between the two looks.
	if a.what == "Transact: update run" {
		c.write, c.index = said.write, said.index/2
		return nil
	}
	if said.write != c.write || said.index != 2*c.index {
		m.t.Errorf("%s: DynamoDB Local counts %+v, the rules %+v", a.what, said.units, c.units)
	}
	return nil
}

// checks reports whether a transaction only checks an item.
func checks(a asked, key map[string]text) bool {
	return slices.ContainsFunc(a.TransactItems, func(write map[string]target) bool {
		check, ok := write["ConditionCheck"]
		return ok && imageKey(check.key()) == imageKey(key)
	})
}

func isRead(what string) bool {
	operation, _, _ := strings.Cut(what, " ")
	return slices.Contains([]string{"GetItem", "poll", "Query", "BatchGetItem"}, operation)
}

// take returns the charges since it was called last.
func (m *meter) take() trace {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.charges
	m.charges = nil
	return taken
}

// has reports whether a request was charged since charges were taken last.
func (m *meter) has(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.charges, func(c charge) bool { return c.what == what })
}

// of returns the consumption of a function call since charges were taken last. Its id is the
// answer's X-Request-Id. Other activities, such as the authorizer's call before it and the
// workflow that it starts, belong to other calls.
func (m *meter) of(call string) trace {
	root := strings.ReplaceAll(call, "-", "")
	return m.take().only(func(c charge) bool { return len(root) == 32 && strings.Contains(c.call, root[:24]) && !isStart(c) })
}

// trace is a list of charges.
type trace []charge

func (t trace) units() units {
	var sum units
	for _, c := range t {
		sum = sum.plus(c.units)
	}
	return sum
}

// only keeps the charges of a kind.
func (t trace) only(is func(charge) bool) trace {
	return slices.DeleteFunc(slices.Clone(t), func(c charge) bool { return !is(c) })
}
