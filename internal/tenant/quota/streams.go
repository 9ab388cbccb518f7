package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindStreams = "workspace_streams"
	// leastStreams is how many streams each part of a count holds, at least, if the count has
	// several parts.
	leastStreams = 64
	// termsCounted is how many terms a stream is counted that nobody renews: the term that it is in
	// and the next one.
	termsCounted = 2
	// leaving is how long the end of a stream may take, with a renewal that is under way.
	leaving = 3 * time.Second
)

// streamPlace is the place of one stream. It is used by one goroutine at a time.
type streamPlace struct {
	*Shared

	workspace string
	// part is the part of the workspace's count that the stream is in; 0 if that count does not
	// count the stream. Otherwise it is the first of counts.
	part   int
	counts []timedCount
	// term is the term in which the stream is counted.
	term int64
}

// timedCount is a count that has an item for each term of streams, or for each window of requests.
type timedCount struct {
	key func(term int64) table.Key
	// most is how much the count may hold.
	most   int64
	refuse func() *fault.Error
}

// load is how many streams a count holds.
type load struct {
	key func(term int64) table.Key
	// there is whether the current term has an item.
	there bool
	// now and before are the streams that are counted in the current term and in the term before.
	now, before int64
}

// Hold takes a place for a stream, and keeps it until leave is called. If the process dies, the
// place is free again after two terms. If the workspace or the thread has no place, Hold returns
// the refusal.
func (s *Shared) Hold(ctx context.Context, workspace, deployment, thread string) (leave func(), err error) {
	return s.streamPlace(workspace, deployment, thread).hold(ctx)
}

// hold takes the place, and keeps it until leave is called.
func (p *streamPlace) hold(ctx context.Context) (leave func(), err error) {
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	ctx, cut := context.WithCancel(context.WithoutCancel(ctx))
	stop := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(guard.Func(p.log, "renew the place of a stream", func() { p.keep(ctx, stop) }))
	return func() {
		defer cut()
		defer time.AfterFunc(leaving, cut).Stop()
		close(stop)
		renewing.Wait()
		p.release(ctx)
	}, nil
}

// parts is how many parts the count of a workspace's streams has.
func (s *Shared) parts() int {
	return int(min(max(1, s.limits.Of(Streams)/leastStreams), keys.StreamParts))
}

// partLimit is how many streams a part of the workspace's count may hold.
func (s *Shared) partLimit(part int) int64 {
	return share(s.limits.Of(Streams), Part(part), int64(s.parts()))
}

func (s *Shared) termAt(now time.Time) int64 { return now.UnixNano() / int64(s.term) }

// streamPlace returns the place of a stream, which is not taken yet.
func (s *Shared) streamPlace(workspace, deployment, thread string) *streamPlace {
	p := &streamPlace{Shared: s, workspace: workspace, counts: make([]timedCount, 1)}
	p.moveTo(1 + rand.IntN(s.parts()))
	if thread != "" {
		p.counts = append(p.counts, timedCount{
			most: s.limits.Of(ThreadStreams), refuse: func() *fault.Error { return s.limits.Refuse(ThreadStreams) },
			key: func(term int64) table.Key { return keys.ThreadStreams(workspace, deployment, thread, term) },
		})
	}
	return p
}

// take counts the stream, one count after the other: a transaction would cost twice as much. The
// condition of each write keeps its limit. If a later count has no room, the earlier ones are given
// back. If the process dies between, or if a write is applied twice because its answer was lost, a
// count is too high until two terms have passed.
func (p *streamPlace) take(ctx context.Context) error {
	_, err := record.Retry(ctx, func(ctx context.Context) (struct{}, error) {
		writes, err := p.taking(ctx)
		for i, write := range writes {
			if err = record.CommitInOrder(ctx, p.table, record.Write(write)); err != nil {
				p.undo(ctx, i)
				break
			}
		}
		return struct{}{}, err
	})
	return err
}

// undo gives the first places of a stream back that has no place in a later count.
func (p *streamPlace) undo(ctx context.Context, taken int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	writes := p.less(p.term)
	p.giveBack(ctx, writes[:min(taken, len(writes))])
}

// taking returns the writes that count the stream, or the refusal.
func (p *streamPlace) taking(ctx context.Context) (writes []table.Write, err error) {
	p.term = p.termAt(p.now())
	loads, err := p.loads(ctx, p.term, p.keys()...)
	if err != nil {
		return nil, err
	}
	if p.part > 0 && loads[0].now+loads[0].before >= p.counts[0].most {
		if loads[0], err = p.move(ctx); err != nil {
			return nil, err
		}
	}
	for i, l := range loads {
		room := p.counts[i].most - l.before
		if l.now >= room {
			return nil, p.counts[i].refuse()
		}
		writes = append(writes, p.more(l, table.Below(attrCount, room)))
	}
	return writes, nil
}

// keys are the keys of the counts that the stream is in.
func (p *streamPlace) keys() []func(term int64) table.Key {
	all := make([]func(int64) table.Key, len(p.counts))
	for i, count := range p.counts {
		all[i] = count.key
	}
	return all
}

// moveTo makes the stream count in another part of its workspace's count.
func (p *streamPlace) moveTo(part int) {
	p.part = part
	p.counts[0] = timedCount{key: ofPart(p.workspace, part), most: p.partLimit(part), refuse: func() *fault.Error { return p.limits.Refuse(Streams) }}
}

func ofPart(workspace string, part int) func(term int64) table.Key {
	return func(term int64) table.Key { return keys.Streams(workspace, part, term) }
}

// allParts are the parts of the count of a workspace's streams.
func (s *Shared) allParts(workspace string) []func(term int64) table.Key {
	all := make([]func(int64) table.Key, s.parts())
	for i := range all {
		all[i] = ofPart(workspace, i+1)
	}
	return all
}

// move chooses the part that has the most room, or returns the refusal.
func (p *streamPlace) move(ctx context.Context) (best load, err error) {
	loads, err := p.loads(ctx, p.term, p.allParts(p.workspace)...)
	if err != nil {
		return load{}, err
	}
	most := int64(0)
	for i, l := range loads {
		if room := p.partLimit(i+1) - l.now - l.before; room > most {
			most, best = room, l
			p.moveTo(i + 1)
		}
	}
	if most == 0 {
		return load{}, p.limits.Refuse(Streams)
	}
	return best, nil
}

// loads reads counts in a term and in the term before.
func (s *Shared) loads(ctx context.Context, term int64, counts ...func(int64) table.Key) ([]load, error) {
	var wanted []table.Key
	for _, key := range counts {
		wanted = append(wanted, key(term), key(term-1))
	}
	items, err := s.table.GetBatch(ctx, wanted...)
	if err != nil {
		return nil, fmt.Errorf("get counts of streams: %w", err)
	}
	loads := make([]load, 0, len(counts))
	for pair := range slices.Chunk(items, termsCounted) {
		l := load{key: counts[len(loads)], there: pair[0] != nil}
		if l.there {
			l.now = pair[0].Int(attrCount)
		}
		if pair[1] != nil {
			l.before = pair[1].Int(attrCount)
		}
		loads = append(loads, l)
	}
	return loads, nil
}

// more returns the write that counts the stream in its term, if the count has room.
func (p *streamPlace) more(l load, room table.Cond) table.Write {
	if l.there {
		return table.Update{Key: l.key(p.term), Add: map[string]int64{attrCount: 1}, If: room}
	}
	end := time.Unix(0, (p.term+termsCounted)*int64(p.Shared.term))
	return newCount(l.key(p.term), kindStreams, p.now(), table.Attrs{attrCount: int64(1)}, end.Add(keptFor))
}

// less returns the writes that no longer count the stream in a term, as far as the term is
// counted at all.
func (p *streamPlace) less(term int64) (writes []table.Write) {
	if p.termAt(p.now())-term >= termsCounted {
		return nil
	}
	for _, key := range p.keys() {
		writes = append(writes, table.Update{Key: key(term), Add: map[string]int64{attrCount: -1}})
	}
	return writes
}

// renew counts the stream in the current term in place of an earlier one.
func (p *streamPlace) renew(ctx context.Context) error {
	earlier := p.term
	err := record.Decide(ctx, p.table, func(ctx context.Context) (o record.Outbox, err error) {
		p.term = p.termAt(p.now())
		loads, err := p.loads(ctx, p.term, p.keys()...)
		if err != nil || p.term == earlier {
			return o, err
		}
		for _, l := range loads {
			o.Add(p.more(l, table.Cond{}))
		}
		o.Add(p.less(earlier)...)
		return o, nil
	})
	if err != nil {
		p.term = earlier
	}
	return err
}

// keep renews the place until stop is closed: once in each term, at a moment in its first half
// that depends on when the stream began. So the streams do not renew their places all at once.
func (p *streamPlace) keep(ctx context.Context, stop <-chan struct{}) {
	phase := time.Duration(p.now().UnixNano()%int64(p.Shared.term)) / 2
	for {
		due := time.Unix(0, (p.term+1)*int64(p.Shared.term)).Add(phase)
		timer := time.NewTimer(max(due.Sub(p.now()), p.Shared.term/60))
		select {
		case <-stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := p.renew(ctx); err != nil {
			p.log.Warn("the place of a stream could not be renewed", "workspace", p.workspace, "error", err)
		}
	}
}

// release gives the place back. If that fails, the place is free again after two terms. The writes
// need no transaction, which would cost twice as much: if only one of them is applied, or if one is
// applied twice because its answer was lost, the counts are right again after two terms.
func (p *streamPlace) release(ctx context.Context) { p.giveBack(ctx, p.less(p.term)) }

func (p *streamPlace) giveBack(ctx context.Context, writes []table.Write) {
	if len(writes) == 0 {
		return
	}
	if err := p.table.InOrder(ctx, writes...); err != nil {
		p.log.Warn("the place of a stream could not be given back", "workspace", p.workspace, "error", err)
	}
}
