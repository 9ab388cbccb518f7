package quota

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const kindUse = "workspace_use"

// attributes are the names of the attributes that hold the counts of a part.
var attributes = map[Name]string{Threads: "threads", Runs: "runs", Stored: "stored"}

// Part names a part of a workspace's counts, as items note it: the first part is 1, and 0
// means that there is no part.
type Part int64

// Pool counts objects that are made often.
type Pool struct {
	table  table.Table
	now    clock.Clock
	limits Limits
	log    *slog.Logger
	mu     sync.Mutex
	// full holds the workspaces whose stored bytes were found to have reached the limit.
	full map[string]bool
}

// NewPool returns the pool of all workspaces of a table.
func NewPool(t table.Table, now clock.Clock, limits Limits, log *slog.Logger) *Pool {
	return &Pool{table: t, now: now, limits: limits, log: log, full: map[string]bool{}}
}

// share is how much of a limit a part may hold, of this many parts.
func share(limit int64, part Part, parts int64) int64 {
	most := limit / parts
	if int64(part) <= limit%parts {
		most++
	}
	return most
}

// Reservation is a request for one place in a quota, through all tries of one decision. It is used
// by one goroutine.
type Reservation struct {
	pool      *Pool
	workspace string
	name      Name
	part      Part
	// absent and full say what the last try has found out about the part.
	absent, full bool
}

// Reserve returns the request for a place for the thread with the given id. home is the part
// that the thread belongs to, or 0 if it belongs to no part yet.
func (p *Pool) Reserve(workspace, thread string, name Name, home Part) *Reservation {
	if home == 0 {
		home = Part(keys.UsePart(thread))
	}
	return &Reservation{pool: p, workspace: workspace, name: name, part: home}
}

// Part is the part that the place is in, once Take has returned without an error.
func (r *Reservation) Part() Part { return r.part }

// Lost reports whether the last commit failed because of the place, so that another Take may
// help.
func (r *Reservation) Lost() bool { return r.absent || r.full }

// Take adds the write that takes the place and also counts the quotas in along. It is called
// again for each try. It reads the other parts only after a try that found the part full; if
// all parts are full, it returns the refusal.
func (r *Reservation) Take(ctx context.Context, o *record.Outbox, along ...Name) error {
	if r.full {
		if err := r.move(ctx); err != nil {
			return err
		}
	}
	most := share(r.pool.limits.Of(r.name), r.part, keys.UseParts)
	counts := map[string]int64{attributes[r.name]: 1}
	for _, name := range along {
		counts[attributes[name]]++
	}
	key, now := keys.Use(r.workspace, int(r.part)), r.pool.now()
	room := r.pool.limits.Of(Stored)
	if r.absent && most > 0 && room > 0 {
		// Stored bytes are counted in all parts, so there are none yet.
		r.absent = false
		set := table.Attrs{}
		for name, n := range counts {
			set[name] = n
		}
		o.Add(record.New(key, kindUse, now, set, nil))
		return nil
	}
	o.AddOr(table.Update{Key: key, Add: counts, If: table.All(table.Below(attributes[r.name], most), table.Below(attributes[Stored], room))}, func(item *table.Item) error {
		r.absent, r.full = item == nil, item != nil || most <= 0 || room <= 0
		return nil // the next try knows more
	})
	return nil
}

// move chooses the part that has the most room, or returns the refusal.
func (r *Reservation) move(ctx context.Context) error {
	parts, err := r.pool.read(ctx, r.workspace)
	if err != nil {
		return err
	}
	if stored(parts) >= r.pool.limits.Of(Stored) {
		return r.pool.limits.Refuse(Stored)
	}
	limit, best := r.pool.limits.Of(r.name), int64(0)
	for i, item := range parts {
		part, used := Part(i+1), int64(0)
		if item != nil {
			used = item.Int(attributes[r.name])
		}
		if room := share(limit, part, keys.UseParts) - used; room > best {
			best, r.part, r.absent = room, part, item == nil
		}
	}
	if r.full = best <= 0; r.full {
		return r.pool.limits.Refuse(r.name)
	}
	return nil
}

func (p *Pool) read(ctx context.Context, workspace string) ([]*table.Item, error) {
	parts, err := p.table.GetBatch(ctx, keys.Uses(workspace)...)
	if err != nil {
		return nil, fmt.Errorf("get use of workspace: %w", err)
	}
	return parts, nil
}

// Freed are places that one transaction gives back, by part.
type Freed map[Part]map[Name]int64

// Add notes a place; part 0 was never counted.
func (f Freed) Add(part Part, name Name) {
	if part != 0 {
		f.add(part, name, 1)
	}
}

// AddStored notes bytes that Count has counted, which all parts hold.
func (f Freed) AddStored(bytes int64) {
	for part := Part(1); bytes != 0 && part <= keys.UseParts; part++ {
		f.add(part, Stored, bytes)
	}
}

func (f Freed) add(part Part, name Name, n int64) {
	if f[part] == nil {
		f[part] = map[Name]int64{}
	}
	f[part][name] += n
}

// Writes returns the writes that give the places back.
func (f Freed) Writes(workspace string) []table.Write {
	var writes []table.Write
	for _, part := range slices.Sorted(maps.Keys(f)) {
		counts := map[string]int64{}
		for name, n := range f[part] {
			counts[attributes[name]] = -n
		}
		writes = append(writes, table.Update{Key: keys.Use(workspace, int(part)), Add: counts})
	}
	return writes
}

// Used returns how much of its pooled quotas a workspace uses.
func (p *Pool) Used(ctx context.Context, workspace string) (map[Name]int64, error) {
	parts, err := p.read(ctx, workspace)
	if err != nil {
		return nil, err
	}
	fading, err := p.fading(ctx, workspace)
	if err != nil {
		return nil, err
	}
	used := map[Name]int64{Stored: stored(parts) + fading, Threads: 0, Runs: 0}
	for _, item := range parts {
		if item != nil {
			used[Threads] += item.Int(attributes[Threads])
			used[Runs] += item.Int(attributes[Runs])
		}
	}
	return used, nil
}
