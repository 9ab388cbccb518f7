package quota

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// grains is how many counts fill the quota. With more of them the count is nearer to the truth, and
// is written more often: the error is about 1 % of the limit when the quota is used up by things
// that are smaller than a grain, and less before.
const grains = 10_000

// overhead is counted for each item besides its body: its key, its attributes, and what the table
// keeps about it.
const overhead = 256

// Size is what an item takes.
func Size(item *table.Item) int { return len(item.Body) + overhead }

// Sum returns what has table.Erase add up the size of all that it erases.
func Sum(size *int) func(*table.Item) bool {
	return func(item *table.Item) bool {
		*size += Size(item)
		return true
	}
}

// Draw turns a size into the bytes to count for it: a whole number of grains, by chance the next
// lower or the next higher one, so that they are the size on average. So small things, which are
// almost all, cost no write as a rule, and their sum is right all the same. The count is noted
// where the thing is, and given back when the thing goes: so errors do not add up over time.
func (p *Pool) Draw(size int) int64 {
	grain := max(p.limits.Of(Stored)/grains, 1)
	var chance [8]byte
	rand.Read(chance[:]) // never returns an error
	counted := int64(size) / grain
	if int64(binary.NativeEndian.Uint64(chance[:])>>1)%grain < int64(size)%grain {
		counted++
	}
	return counted * grain
}

// Count counts bytes that a workspace has stored, or those that it has no more when they are less
// than 0. What expires is counted until the month of that is over, the rest, with a zero time,
// until it is given back. note is the write that says so where the thing is, nil for none; when its
// condition fails, the thing has gone and nothing is counted.
//
// Each part of the workspace's counts holds all bytes, so that a run or a thread finds them in the
// part that it takes its place in.
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
	found, err := p.table.GetBatch(ctx, key)
	if err != nil {
		return fmt.Errorf("get use of workspace: %w", err)
	}
	o.Add(p.add(found[0], key, end, bytes))
	return nil
}

// add returns the write that adds to the bytes of an item, nil when there is none yet.
func (p *Pool) add(item *table.Item, key table.Key, expires time.Time, bytes int64) table.Write {
	counts := map[string]int64{attributes[Stored]: bytes}
	if item != nil {
		return table.Update{Key: key, Add: counts}
	}
	return table.Put{Item: table.Item{Key: key, Attrs: record.Attrs(kindUse, p.now(), attrs(counts)), Expires: expires}, If: table.Absent()}
}

// Room refuses a thing of a size that is about to be stored when the workspace has stored as much
// as it may. It asks the table only where Draw would count something, so as a rule it costs
// nothing; once it has found the quota used up, it asks each time until there is room again.
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

// stored are the bytes of a workspace that do not expire; all parts that there are agree on them.
func stored(parts []*table.Item) int64 {
	for _, item := range parts {
		if item != nil {
			return max(item.Int(attributes[Stored]), 0)
		}
	}
	return 0
}

// fading are the bytes of a workspace that expire.
func (p *Pool) fading(ctx context.Context, workspace string) (bytes int64, err error) {
	err = table.Each(ctx, p.table, func(item *table.Item) error {
		bytes += max(item.Int(attributes[Stored]), 0)
		return nil
	}, keys.UsesUntil(workspace))
	if err != nil {
		return 0, fmt.Errorf("query use of workspace: %w", err)
	}
	return bytes, nil
}
