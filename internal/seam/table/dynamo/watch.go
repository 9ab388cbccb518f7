package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// A watched key is read after minPoll, then at intervals that double up to maxPoll. After a
// change, the intervals begin again at minPoll. An idle watch costs half a read unit in a
// second.
const minPoll, maxPoll = 100 * time.Millisecond, time.Second

// Watch returns a watcher of the key. The watcher is woken once soon after it was made: the
// first look at the key, with which later looks are compared, may already have missed a
// change.
func (t *Table) Watch(key table.Key) table.Watcher { return t.watchers.Add(key) }

// startPoll polls a key until the returned function is called.
func (t *Table) startPoll(key table.Key) (end func()) {
	if t.open.Err() != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.open)
	t.polls.Go(guard.Func(t.log, "watch an item", func() { t.poll(ctx, key) }))
	return cancel
}

func (t *Table) poll(ctx context.Context, key table.Key) {
	var last string
	known := false
	interval := minPoll
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		item, err := t.look(ctx, key)
		tx := textOf(item, nameTx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The woken reader reads, and learns by its own read whether the table can be
			// reached.
			t.log.WarnContext(ctx, "A watched key could not be read.", "error", err)
			known, interval = false, min(2*interval, maxPoll)
			t.watchers.Wake(key)
		case !known || tx != last:
			last, known, interval = tx, true, minPoll
			t.watchers.WakeWith(key, t.whole(item))
		default:
			interval = min(2*interval, maxPoll)
		}
		timer.Reset(interval)
	}
}

// look reads an item in its stored form, nil when there is no item. An eventually consistent read
// is half the price, and the next read corrects a read that was behind.
func (t *Table) look(ctx context.Context, key table.Key) (stored, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: storedKey(key)})
	if err != nil {
		return nil, fmt.Errorf("watch item %q: %w", key, err)
	}
	return out.Item, nil
}

// whole decodes an item for the watchers. It returns nil for an item that they have to read
// themselves: it is gone, its body is elsewhere, or it is damaged.
func (t *Table) whole(item stored) *table.Item {
	h, err := decodeItem(item)
	if err != nil || !h.alive(t.seconds()) || h.wantsBody() {
		return nil
	}
	return h.Item
}
