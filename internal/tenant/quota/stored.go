package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// grains is how many grains fill the quota. With more grains the count is more accurate, and
// is written more often: the error is about 1 % of the limit when objects that are smaller
// than a grain have used up the quota, and smaller before that.
const grains = 10_000

// overhead is counted for each item besides its body: its key, its attributes, and the table's
// own data about it.
const overhead = 256

// Size returns the counted size of an item, in bytes.
func Size(item *table.Item) int { return len(item.Body) + overhead }

// Sum returns a function for table.Erase that adds up the size of all items that it erases.
func Sum(size *int) func(*table.Item) bool {
	return func(item *table.Item) bool {
		*size += Size(item)
		return true
	}
}

// Draw turns a size into the bytes to count for it: a whole number of grains, by chance the
// next lower or the next higher number, so that the result is the size on average. So small
// objects, which are the great majority, usually cost no write, and their sum is still right.
// The count is noted with the object, and given back when the object is deleted, so errors do
// not add up over time.
func (p *Pool) Draw(size int) int64 {
	grain := max(p.limits.Of(Stored)/grains, 1)
	return (int64(size) + rand.Int64N(grain)) / grain * grain
}

// Count counts bytes that a workspace has stored, or, if bytes is negative, bytes that it has
// deleted. Bytes that expire are counted until the end of the month of their expiry; other
// bytes, with a zero time, until they are given back. note is the write that notes the count
// with the object, or nil if there is no note; if its condition fails, the object is gone and
// nothing is counted.
//
// Each part of the workspace's counts holds all bytes, so a run or a thread finds them in the
// part in which it takes its place.
func (p *Pool) Count(ctx context.Context, workspace string, bytes int64, expires time.Time, note table.Write) error {
	if bytes == 0 {
		return nil
	}
	errGone := errors.New("the thing has gone")
	err := record.Decide(ctx, p.table, func(ctx context.Context) (o record.Outbox, err error) {
		if note != nil {
			o.AddOr(note, record.Always(errGone))
		}
		if expires.IsZero() {
			err = p.countLasting(ctx, &o, workspace, bytes)
		} else {
			err = p.countFading(ctx, &o, workspace, bytes, expires)
		}
		return o, err
	})
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return nil
}

// CountStored is Count for objects that were written or deleted already. So an error is only
// logged, and the end of ctx does not end it.
func (p *Pool) CountStored(ctx context.Context, workspace string, bytes int64, expires time.Time, note table.Write) {
	ctx = context.WithoutCancel(ctx)
	if err := p.Count(ctx, workspace, bytes, expires, note); err != nil {
		p.log.WarnContext(ctx, "stored bytes were not counted", "workspace", workspace, "bytes", bytes, "error", err)
	}
}

func (p *Pool) countLasting(ctx context.Context, o *record.Outbox, workspace string, bytes int64) error {
	parts, err := p.read(ctx, workspace)
	if err != nil {
		return err
	}
	for i, item := range parts {
		o.Add(p.add(item, keys.Use(workspace, i+1), time.Time{}, bytes))
	}
	return nil
}

func (p *Pool) countFading(ctx context.Context, o *record.Outbox, workspace string, bytes int64, expires time.Time) error {
	key, end := keys.UseUntil(workspace, expires)
	if !end.After(p.now()) {
		return nil
	}
	items, err := p.table.GetBatch(ctx, key)
	if err != nil {
		return fmt.Errorf("get use of workspace: %w", err)
	}
	o.Add(p.add(items[0], key, end, bytes))
	return nil
}

// add returns the write that adds to the bytes of an item; item is nil if it does not exist
// yet.
func (p *Pool) add(item *table.Item, key table.Key, expires time.Time, bytes int64) table.Write {
	if item != nil {
		return table.Update{Key: key, Add: map[string]int64{attributes[Stored]: bytes}}
	}
	return newCount(key, kindUse, p.now(), table.Attrs{attributes[Stored]: bytes}, expires)
}

// Room refuses an object of the given size that is about to be stored if the workspace's
// stored bytes have reached the limit. It asks the table only if Draw would count something,
// so it usually costs nothing; once it has found the quota used up, it asks each time until
// there is room again.
func (p *Pool) Room(ctx context.Context, workspace string, size int) error {
	p.mu.Lock()
	asks := p.full[workspace]
	p.mu.Unlock()
	if !asks && p.Draw(size) == 0 {
		return nil
	}
	used, err := p.Used(ctx, workspace)
	if err != nil {
		return err
	}
	full := used[Stored] >= p.limits.Of(Stored)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !full {
		delete(p.full, workspace)
		return nil
	}
	p.full[workspace] = true
	return p.limits.Refuse(Stored)
}

// stored returns the bytes of a workspace that do not expire; all existing parts agree on
// them.
func stored(parts []*table.Item) int64 {
	for _, item := range parts {
		if item != nil {
			return max(item.Int(attributes[Stored]), 0)
		}
	}
	return 0
}

// fading returns the bytes of a workspace that expire.
func (p *Pool) fading(ctx context.Context, workspace string) (bytes int64, err error) {
	for item, err := range table.Items(ctx, p.table, keys.UsesUntil(workspace)) {
		if err != nil {
			return 0, fmt.Errorf("query use of workspace: %w", err)
		}
		bytes += max(item.Int(attributes[Stored]), 0)
	}
	return bytes, nil
}
