package dynamo

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// tick is the unit of the times at which watched keys are read. It brings keys together that are
// due at about the same time.
const tick = 25 * time.Millisecond

// A watched key is read minPoll ticks after its watch began, then at intervals that grow by half up
// to maxPoll ticks. After a change, the intervals begin again at minPoll. So an item that changes
// three times a second is read 2.4 times for each change, 80 ms after it on average. A watch whose
// interval is maxPoll costs half a read unit in a second.
const minPoll, maxPoll = 4, 40

// idleLooks is how many looks without a change make a watch idle. They take six seconds: an answer
// that is written word by word is seldom still for so long.
const idleLooks = 10

// never is a tick that does not come.
const never = math.MaxInt64

// Watch returns a watcher of the key. The watcher is woken once soon after it was made: the
// first look at the key, with which later looks are compared, may already have missed a
// change.
func (t *Table) Watch(key table.Key) table.Watcher { return t.watchers.Add(key) }

// looks are the watched keys. One request reads all keys that are due at about the same time:
// with a request for each key, 256 waiting runs took a tenth of a processor. A goroutine polls
// while there are watched keys, and sleeps until the next one is due.
type looks struct {
	begun time.Time // ticks are counted from here
	timer *time.Timer

	mu      sync.Mutex
	byKey   map[table.Key]*look
	polling bool
	// wake is the tick at which the timer wakes the poller, or never.
	wake int64
}

func newLooks() *looks {
	all := &looks{begun: time.Now(), timer: time.NewTimer(0), byKey: map[table.Key]*look{}, wake: never}
	all.timer.Stop()
	return all
}

// look is a watched key. Its times are in ticks.
type look struct {
	key      table.Key
	interval int64
	// due is when the key is read next, never while a request reads it.
	due int64
	// tx is the transaction that wrote the item that was read last. It is not known before the
	// first read and after an error.
	tx    string
	known bool
	// still counts the looks since the last change.
	still int
}

// startPoll polls a key until the returned function is called.
func (t *Table) startPoll(key table.Key) (end func()) {
	if t.open.Err() != nil {
		return func() {}
	}
	all := t.looks
	all.mu.Lock()
	defer all.mu.Unlock()
	l := &look{key: key, interval: minPoll}
	all.byKey[key] = l
	all.plan(l, all.now()+minPoll)
	if !all.polling {
		all.polling = true
		t.polls.Go(guard.Func(t.log, "watch items", t.poll))
	}
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if delete(all.byKey, key); len(all.byKey) == 0 {
			all.wakeAt(all.now()) // the poller ends
		}
	}
}

// poll reads the watched keys when they are due, until there are none.
func (t *Table) poll() {
	for {
		select {
		case <-t.open.Done():
			return
		case <-t.looks.timer.C:
		}
		busy, idle, goesOn := t.looks.next()
		if !goesOn {
			return
		}
		t.readAll(busy, eventually)
		t.readAll(idle, onlyTx)
	}
}

// now returns how many ticks have passed.
func (all *looks) now() int64 { return int64(time.Since(all.begun) / tick) }

// plan says when a key is read next, and wakes the poller then.
func (all *looks) plan(l *look, due int64) {
	if l.due = due; due < all.wake {
		all.wakeAt(due)
	}
}

func (all *looks) wakeAt(due int64) {
	all.wake = due
	all.timer.Reset(time.Until(all.begun.Add(time.Duration(due) * tick)))
}

// next returns the looks that are due, those of idle watches apart, and whether there will be
// others.
func (all *looks) next() (busy, idle []*look, goesOn bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	now, wake := all.now(), int64(never)
	for _, l := range all.byKey {
		switch {
		case l.due > now:
			wake = min(wake, l.due)
			continue
		case l.still < idleLooks:
			busy = append(busy, l)
		default:
			idle = append(idle, l)
		}
		l.due = never
	}
	if all.wake = never; wake < never {
		all.wakeAt(wake)
	}
	all.polling = len(all.byKey) > 0
	return busy, idle, all.polling
}

func (t *Table) readAll(due []*look, as types.KeysAndAttributes) {
	for some := range slices.Chunk(due, maxBatchGet) {
		t.polls.Go(guard.Func(t.log, "read watched items", func() { t.read(some, as) }))
	}
}

// read looks at keys, and wakes the watchers of those that have changed. An eventually
// consistent read is half the price, and the next read corrects a read that was behind.
//
// An idle watch is asked only for the transaction: to decode the items of 256 waiting runs each
// second took a third of the processor time of their process. The price is the same, because
// DynamoDB counts the whole item. But each reader then has to read the item itself: the first
// change after idleness costs the reader one consistent read, as much as two seconds of an idle
// watch. The looks at the next changes bring the item.
func (t *Table) read(some []*look, as types.KeysAndAttributes) {
	keys := make([]table.Key, len(some))
	for i, l := range some {
		keys[i] = l.key
	}
	items := make(map[table.Key]stored, len(some))
	err := t.getSome(t.open, keys, as, items)
	if t.open.Err() != nil {
		return
	}
	if err != nil {
		t.log.WarnContext(t.open, "Watched keys could not be read.", "keys", len(keys), "error", err)
	}
	for _, l := range some {
		item := items[l.key]
		switch changed := t.looks.seen(l, textOf(item, nameTx), err == nil); {
		case err != nil:
			// The woken reader reads, and learns by its own read whether the table can be
			// reached.
			t.watchers.Wake(l.key)
		case changed:
			t.watchers.WakeWith(l.key, t.whole(item))
		}
	}
}

// seen notes a read, and says when the next one is due. It reports whether the item has
// changed. A read for a watch that has ended changes nothing.
func (all *looks) seen(l *look, tx string, known bool) (changed bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byKey[l.key] != l {
		return false
	}
	if changed = known && (!l.known || tx != l.tx); changed {
		l.interval, l.still = minPoll, 0
	} else {
		l.interval, l.still = min(l.interval*3/2, maxPoll), l.still+1
	}
	l.tx, l.known = tx, known
	// Quarters of intervals bring keys together that are read seldom. All keys that are read once a
	// second have the same tick: 256 waiting runs take three requests a second, and with quarters
	// four to six.
	unit := l.interval / minPoll
	due := (all.now() + l.interval + unit/2) / unit * unit
	if l.interval == maxPoll {
		due = (all.now() + maxPoll) / maxPoll * maxPoll
	}
	all.plan(l, due)
	return changed
}

// whole decodes an item for the watchers. It returns nil for an item that they have to read
// themselves: it is gone, only its transaction was read, its body is elsewhere, or it is damaged.
func (t *Table) whole(item stored) *table.Item {
	h, err := decodeItem(item)
	if err != nil || !h.alive(t.seconds()) || h.wantsBody() {
		return nil
	}
	return h.Item
}
