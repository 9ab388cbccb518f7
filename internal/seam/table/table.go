// Package table is the seam to storage: items in ordered partitions, written by transactions under
// conditions.
//
// The operations are those that DynamoDB can serve with one request each and SQLite with one
// statement: Get, Query of one partition or one index partition in key order, and Transact of
// up to MaxWrites writes. InOrder and Delete write without a transaction, at half the price. There
// is no scan, no join and no filter.
//
// An Item has scalar attributes and an opaque body. Conditions and partial updates can use the
// attributes. The body is only read and replaced as a whole. An item may appear in sparse
// secondary indexes under other keys.
//
// Every adapter gives these guarantees, and package tabletest proves them: a transaction is
// applied wholly or not at all. When it returns without error, it survives the death of the
// process and of the machine. Conditions are decided on the state that the writes are applied
// to. Get, GetBatch and Query on a primary partition see every transaction that has returned.
// A query on an index, and one that allows it, may lag behind (DynamoDB's eventual consistency).
package table

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/watch"
)

// Limits that hold for every adapter.
const (
	// MaxWrites is how many writes one transaction may hold. DynamoDB's TransactWriteItems
	// takes one more, which its adapter needs.
	MaxWrites = 99
	// MaxKey is how long each part of a key may be, in bytes (DynamoDB: sort keys).
	MaxKey = 1024
	// MaxAttrs is how large the attributes that one write names may be, names and values
	// together, in bytes. Data that may grow belongs in the body.
	MaxAttrs = 256 << 10
	// MaxBody is how large an item's body may be, in bytes. An adapter splits a body that its
	// store cannot keep in one piece.
	MaxBody = 32 << 20
	// MaxLimit is how many items a Query returns at most in one page.
	MaxLimit = 1000
)

// ErrNotFound is returned by Get when there is no item under the key.
var ErrNotFound = errors.New("item not found")

// ErrBusy is returned by every method when the table takes no more calls at the moment. The
// state passes: the API answers it as 503 with Retry-After, and background work, for which no
// caller waits, is repeated.
var ErrBusy = fault.New(fault.Unavailable, "The store is busy. Try again later.")

// Key names one item: a partition and the place in it. Both parts are non-empty UTF-8.
type Key struct{ PK, SK string }

// Attrs are an item's scalar attributes. Values are string, int64 or bool; an absent attribute
// equals nothing.
type Attrs map[string]any

// Index names a secondary index. The set is fixed, because each is a global secondary index of
// the DynamoDB table.
type Index string

const (
	// ByList orders the items of a collection for lists.
	ByList Index = "list"
	// ByDue holds the items that a timer must look at, ordered by their time. A query on it
	// returns references: Key, Expires and the key in ByDue itself, no attributes and no body.
	// Code that acts on an item reads the item first, because an index may lag behind. A
	// change of anything else in an item costs no write of the index.
	ByDue Index = "due"
)

// Whole reports whether a query on the index returns whole items.
func (i Index) Whole() bool { return i != ByDue }

// Item is one stored record. An item that a table returns is read only, because another caller
// may have the same item.
type Item struct {
	Key   Key
	Attrs Attrs
	// Body is opaque to the table and may be nil.
	Body []byte
	// Index holds the item's key in each index in which it appears.
	Index map[Index]Key
	// Expires, when not zero, is when the item ceases to exist. From then on it is absent for
	// reads and conditions alike, and it is erased some time later. The time is cut to seconds
	// (DynamoDB: TTL).
	Expires time.Time
}

// Text returns a string attribute, "" when it is absent.
func (i *Item) Text(name string) string { s, _ := i.Attrs[name].(string); return s }

// Int returns an integer attribute, 0 when it is absent.
func (i *Item) Int(name string) int64 { n, _ := i.Attrs[name].(int64); return n }

// Bool returns a boolean attribute, false when it is absent.
func (i *Item) Bool(name string) bool { b, _ := i.Attrs[name].(bool); return b }

// Write is one write of a transaction: Put, Update, Delete or Check. No two writes of a transaction
// may name one key.
type Write interface {
	// Target is the key that the write concerns.
	Target() Key
	// Condition must hold for the transaction to be applied.
	Condition() Cond
}

// Put stores an item and replaces the item that stood there.
type Put struct {
	Item Item
	If   Cond
}

// Update changes parts of an item that must be present. A part that it does not name stays.
type Update struct {
	Key Key
	// Set replaces or adds attributes, Unset removes them, Add adds to integers (an absent
	// integer counts as 0).
	Set   Attrs
	Unset []string
	Add   map[string]int64
	// Body replaces the body when it is not nil.
	Body []byte
	// Index sets the item's key in an index. A zero Key takes the item out of it.
	Index map[Index]Key
	If    Cond
}

// Delete removes an item. Without a condition, removing an absent item succeeds.
type Delete struct {
	Key Key
	If  Cond
}

// Check writes nothing. Its condition takes part in the transaction.
type Check struct {
	Key Key
	If  Cond
}

func (w Put) Target() Key    { return w.Item.Key }
func (w Update) Target() Key { return w.Key }
func (w Delete) Target() Key { return w.Key }
func (w Check) Target() Key  { return w.Key }

// AddTo adds the numbers of Add to the attributes of the stored item. An attribute that is no
// integer, and a sum that does not fit 64 bits, are errors.
func (w Update) AddTo(stored Attrs) error {
	for name, n := range w.Add {
		sum, isInteger := stored[name].(int64)
		switch {
		case stored[name] != nil && !isInteger:
			return fmt.Errorf("update %q: attribute %s has type %T: only to an integer can be added", w.Key, name, stored[name])
		case n > 0 && sum > math.MaxInt64-n, n < 0 && sum < math.MinInt64-n:
			return fmt.Errorf("update %q: attribute %s: %d and %d exceed 64 bits", w.Key, name, sum, n)
		}
		stored[name] = sum + n
	}
	return nil
}

func (w Put) Condition() Cond    { return w.If }
func (w Update) Condition() Cond { return All(Present(), w.If) }
func (w Delete) Condition() Cond { return w.If }
func (w Check) Condition() Cond  { return w.If }

// ConditionFailed is returned when a condition did not hold. Transact has written nothing then.
type ConditionFailed struct {
	// Write is the index of the first write whose condition failed.
	Write int
	// Item is the item that stood under that write's key, nil if there was no item.
	Item *Item
}

func (e *ConditionFailed) Error() string { return fmt.Sprintf("condition of write %d failed", e.Write) }

// Query asks for items of one partition in key order.
type Query struct {
	// Index is the index to read. "" reads the primary keys. ByDue returns references only.
	Index Index
	// PK is the partition, in the index's own keys when Index is set.
	PK string
	// From and To bound the sort key, both inclusive. "" leaves that side open. Prefix asks
	// for all sort keys that begin with it and excludes From and To.
	From, To, Prefix string
	// Reverse returns the last items first.
	Reverse bool
	// Eventual allows that the answer lags behind, as it does on an index. It halves the price
	// of the query where reads cost money.
	Eventual bool
	// Limit is the page's size, 1 to MaxLimit. 0 means MaxLimit.
	Limit int
	// Bytes ends a page before its limit: the page ends with the item with which its bodies
	// hold this many bytes. 0 is no bound.
	Bytes int
	// Cursor continues after the page that returned it. The other fields must be equal; only
	// Limit, Bytes and Eventual may change.
	Cursor string
}

// Full reports whether a page of this many items, whose bodies hold this many bytes, has no
// room for another item.
func (q Query) Full(items, size int) bool {
	return items == q.Limit || (q.Bytes > 0 && size >= q.Bytes)
}

// Page is one page of a query's answer.
type Page struct {
	Items []*Item
	// Cursor asks for the next page. It is "" when there is no next page.
	Cursor string
}

// Table is the seam. All methods may be called concurrently.
type Table interface {
	// Get returns the item under the key, or ErrNotFound.
	Get(ctx context.Context, key Key) (*Item, error)
	// GetBatch returns the items under up to MaxWrites keys in their order, nil where there is
	// no item. The items need not all be of one moment: a transaction that is applied
	// meanwhile may show in only some of them. The same holds for the items of a page.
	GetBatch(ctx context.Context, keys ...Key) ([]*Item, error)
	// Query returns a page of items. A cursor that this table did not make is an error.
	Query(ctx context.Context, query Query) (Page, error)
	// Transact applies all writes or none of them. A condition that does not hold is a
	// *ConditionFailed. After any other error, also an error of the context, it can be unknown
	// whether the writes were applied, because the answer itself may have been lost on the
	// way.
	Transact(ctx context.Context, writes ...Write) error
	// InOrder applies writes one after the other, and ends with the first write whose condition
	// does not hold. It costs half of Transact where each write costs money. After any error,
	// some of the first writes may be applied and the later writes not; an adapter may also apply
	// all writes or no write. A write may be applied twice, when the answer of its first
	// application was lost. If a write makes its own condition fail, *ConditionFailed can mean
	// that it was applied, and its Item is the item as the write, or a later writer, has left it.
	InOrder(ctx context.Context, writes ...Write) error
	// Delete erases the items under up to MaxWrites keys, at half the price of Transact. An absent
	// item is no error. The items disappear in any order: meanwhile, and after an error, some of
	// them may be gone and the others not. So it is for callers that nobody sees half done, and
	// that begin again after an error. An item that is put under one of the keys before Delete
	// returns may be erased, too.
	Delete(ctx context.Context, keys ...Key) error
	// Watch returns a watcher that is woken after each call that wrote to the key. A
	// wake-up is a hint: it may come without a change, and several changes may be one wake-up,
	// but every change after Watch returned has a later wake-up.
	Watch(key Key) Watcher
}

// Watcher wakes a reader early.
type Watcher interface {
	// C delivers wake-ups.
	C() <-chan struct{}
	// Item returns the item as it was found when the watchers were last woken, so that a reader
	// that was woken need not read it again. It is nil if the table does not know the item. The
	// item may be older than one that the reader has read itself; a later wake-up follows then.
	Item() *Item
	// Stop ends the watch. C delivers nothing afterwards.
	Stop()
}

// Await returns when due fires or one of the channels of watchers delivers a wake-up, or the error
// of a context that ends before. Each channel may be nil.
func Await(ctx context.Context, due <-chan time.Time, one, other <-chan struct{}) error {
	select {
	case <-one:
	case <-other:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

type withoutContentsKey struct{}

// WithoutContents says that a caller needs only the keys, attributes and sizes of the items that it
// reads. A table that would have to ask for their contents leaves the contents out.
func WithoutContents(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutContentsKey{}, true)
}

// IsWithoutContents reports whether the caller needs no contents.
func IsWithoutContents(ctx context.Context) bool { return ctx.Value(withoutContentsKey{}) != nil }

// Watchers is an adapter's register of the watchers of each key. They are woken with the item that
// was found, nil if it is not known.
type Watchers = watch.Watchers[Key, *Item]

// NewWatchers makes an empty register, as watch.New does.
func NewWatchers(begin func(Key) (end func())) *Watchers { return watch.New[Key, *Item](begin) }
