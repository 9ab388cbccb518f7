package cron

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Ref names a cron. Every read and write begins with the workspace.
type Ref struct{ Workspace, Deployment, Cron string }

// Content is the part of a cron that the client requested.
type Content struct {
	// Graph and AssistantID say which graph and assistant run. A run uses the assistant's
	// configuration at the time when the run is created.
	Graph       string `json:"graph"`
	AssistantID string `json:"assistant_id"`
	// Thread is the thread of all runs. If it is "", each run has a thread of its own, which
	// is removed with the run unless Keep is set.
	Thread string `json:"thread,omitempty"`
	Keep   bool   `json:"keep,omitempty"`
	// Schedule is a cron expression, Timezone a name of the IANA database, "" for UTC.
	Schedule string `json:"schedule"`
	Timezone string `json:"timezone,omitempty"`
	// End is the time after which the cron does not fire, zero for no end.
	End      time.Time       `json:"end"`
	Enabled  bool            `json:"enabled"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Request is the request with which each run is created.
	Request run.Request `json:"request"`
}

// Cron is a run that begins at given times.
type Cron struct {
	Ref
	Content
	Created, Updated time.Time
	// Next is the next time at which the cron fires, zero if it does not fire.
	Next time.Time
	// serving is the due time that is being served, zero if no due time is being served. due
	// is the time at which a timer checks the cron, because of Next or of serving; zero for
	// never.
	serving, due time.Time
	version      int64
}

const kind = "cron"

const (
	attrNext    = "next"
	attrServing = "serving"
)

// maxContent is how many bytes the stored form of a cron may have, because lists read it.
const maxContent = 256 << 10

// lease is how long the creation of a run may take before another timer takes over.
const lease = time.Minute

func decode(item *table.Item) (Cron, error) {
	parts, err := keys.ParseCron(item.Key)
	if err != nil {
		return Cron{}, err
	}
	r := record.Read(item, kind)
	c := Cron{
		Ref: Ref(parts), Created: r.Created(), Updated: r.Updated(), Next: r.Time(attrNext), serving: r.Time(attrServing), version: item.Int(record.Version),
	}
	if entry := item.Index[table.ByDue]; entry != (table.Key{}) {
		if c.due, err = keys.DueCronTime(entry); err != nil {
			return Cron{}, fmt.Errorf("item %v: %w", item.Key, err)
		}
	}
	r.Decode(&c.Content)
	return c, r.Err()
}

func (r Ref) key() table.Key { return keys.Cron(r.Workspace, r.Deployment, r.Cron) }

// entry returns the index entry under which a timer finds the cron: at its next time, or,
// while a due time is being served, at the time when serving it takes too long.
func (c Cron) entry(now time.Time) map[table.Index]table.Key {
	switch {
	case !c.serving.IsZero():
		return map[table.Index]table.Key{table.ByDue: keys.DueCrons.At(c.Cron, now.Add(lease))}
	case c.Next.IsZero():
		return map[table.Index]table.Key{table.ByDue: {}}
	default:
		return map[table.Index]table.Key{table.ByDue: keys.DueCrons.At(c.Cron, c.Next)}
	}
}

// put stores a new cron.
func (c Cron) put() (table.Put, error) {
	put := record.New(c.key(), kind, c.Created, table.Attrs{attrNext: clock.FormatOptional(c.Next), attrServing: ""}, record.Encode(c.Content))
	if !c.Next.IsZero() {
		put.Item.Index = c.entry(c.Created)
	}
	return put, c.checkSize(put.Item.Body)
}

func (c Cron) checkSize(body []byte) error {
	if len(body) > maxContent {
		return fault.New(fault.Invalid, "The cron holds %d bytes: the limit is %d.", len(body), maxContent)
	}
	return nil
}

// change is the write that stores the changed cron, unless the stored cron has changed since
// it was read. Clients see the time of a change of the body.
func (c Cron) change(now time.Time, body []byte) table.Update {
	update := record.Change(c.key(), now, table.Attrs{attrNext: clock.FormatOptional(c.Next), attrServing: clock.FormatOptional(c.serving)}, table.Equals(record.Version, c.version))
	if update.Body = body; body == nil {
		update.Set[record.Updated] = clock.Format(c.Updated)
	}
	update.Index = c.entry(now)
	return update
}

// plan sets the next time after a moment.
func (c *Cron) plan(after time.Time) error {
	next, err := c.next(after)
	if c.Next = next; !c.Enabled {
		c.Next = time.Time{}
	}
	return err
}
