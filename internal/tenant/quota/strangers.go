package quota

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindStrangers   = "strangers"
	kindKnownCaller = "known_caller"
	// attrAsking and attrRefused hold the numbers of questions under way and of refusals.
	attrAsking  = "asking"
	attrRefused = "refused"
	// purposeStranger is the purpose of the fingerprints of origins and of callers.
	purposeStranger = "stranger"
	// givingBack is how long the end of a question may take.
	givingBack = 3 * time.Second
)

// Strangers counts, in the table, the questions about callers that a deployment does not know, so
// that their bounds hold for all processes together. The table holds no address and no credentials,
// but fingerprints of them. It is safe for concurrent use.
type Strangers struct {
	// Table holds the counts.
	Table table.Table
	// Hasher returns the key of the fingerprints.
	Hasher func(ctx context.Context) (secret.Hasher, error)
	Now    clock.Clock
	Log    *slog.Logger
}

// Question is a question to a deployment about a caller.
type Question struct {
	Workspace, Deployment string
	// Caller are the caller's credentials; a caller without credentials is never known.
	Caller []byte
	// Bounds bound the question, unless the caller is known.
	Bounds []StrangerBound
}

// StrangerBound bounds the strangers with one origin, or all strangers if the origin is empty.
type StrangerBound struct {
	Origin string
	// PerSecond is how many strangers may be refused, as an average of a window of 10 s, and Burst
	// how many may be refused in each window in any case. AtOnce is how many questions may be under
	// way.
	PerSecond     float64
	Burst, AtOnce int
}

// refused is how many strangers may be refused in a window.
func (b StrangerBound) refused() int64 {
	return max(int64(b.Burst), int64(b.PerSecond*window.Seconds()))
}

// asking is a question under way.
type asking struct {
	*Strangers

	// known is the key of the caller's note, nil if the caller has no credentials.
	known *table.Key
	// isKnown says that there is such a note.
	isKnown bool
	// taken are the counts that the question is in.
	taken []table.Key
}

// Begin takes places for a question. If a bound is reached, it returns how long the caller must
// wait. Otherwise answered must be called with the answer, and how long the deployment knows a
// caller that it has let in. The counts forget the question of a dead process after two windows.
func (s *Strangers) Begin(ctx context.Context, q Question) (answered func(ctx context.Context, letIn bool, known time.Duration), wait time.Duration, err error) {
	hasher, err := s.Hasher(ctx)
	if err != nil {
		return nil, 0, err
	}
	mark := func(text []byte) string { return hex.EncodeToString(hasher.MAC(purposeStranger, text)) }
	a := &asking{Strangers: s}
	if len(q.Caller) > 0 {
		key := keys.KnownCaller(q.Workspace, q.Deployment, mark(q.Caller))
		notes, err := s.Table.GetBatch(ctx, key)
		if err != nil {
			return nil, 0, fmt.Errorf("get known caller: %w", err)
		}
		if a.known, a.isKnown = &key, notes[0] != nil; a.isKnown {
			return a.answered, 0, nil
		}
	}
	for _, bound := range q.Bounds {
		origin := ""
		if bound.Origin != "" {
			origin = mark([]byte(bound.Origin))
		}
		wait, err := a.take(ctx, bound, func(window int64) table.Key { return keys.Strangers(q.Workspace, q.Deployment, origin, window) })
		if wait > 0 || err != nil {
			a.giveBack(ctx, false)
			return nil, wait, err
		}
	}
	return a.answered, 0, nil
}

// take counts the question, or returns how long the caller must wait.
func (a *asking) take(ctx context.Context, bound StrangerBound, count func(window int64) table.Key) (wait time.Duration, err error) {
	return record.Retry(ctx, func(ctx context.Context) (time.Duration, error) {
		now := a.Now()
		current := windowAt(now)
		key := count(current)
		items, err := a.Table.GetBatch(ctx, key, count(current-1))
		if err != nil {
			return 0, fmt.Errorf("get count of strangers: %w", err)
		}
		before, atOnce := int64(0), int64(bound.AtOnce)
		if items[1] != nil {
			before = items[1].Int(attrAsking)
		}
		var o record.Outbox
		switch {
		case items[0] == nil && before < atOnce:
			end := time.Unix(0, (current+termsCounted)*int64(window))
			o.Add(newCount(key, kindStrangers, now, table.Attrs{attrAsking: int64(1)}, end.Add(keptFor)))
		case items[0] != nil && items[0].Int(attrRefused) >= bound.refused():
			return window - time.Duration(now.UnixNano()%int64(window)), nil
		case items[0] == nil || items[0].Int(attrAsking)+before >= atOnce:
			return time.Second, nil
		default:
			room := table.All(table.Below(attrAsking, atOnce-before), table.Below(attrRefused, bound.refused()))
			o.Add(table.Update{Key: key, Add: map[string]int64{attrAsking: 1}, If: room})
		}
		if err := record.CommitInOrder(ctx, a.Table, o); err != nil {
			return 0, err
		}
		a.taken = append(a.taken, key)
		return 0, nil
	})
}

// answered notes the deployment's answer.
func (a *asking) answered(ctx context.Context, letIn bool, known time.Duration) {
	a.giveBack(ctx, !letIn)
	var write table.Write
	switch {
	case a.known == nil || letIn == a.isKnown:
		return
	case letIn:
		now := a.Now()
		write = table.Put{Item: table.Item{Key: *a.known, Attrs: record.Attrs(kindKnownCaller, now, nil), Expires: now.Add(known)}}
	default:
		write = table.Delete{Key: *a.known}
	}
	a.write(ctx, "the note about a caller could not be written", write)
}

// write applies writes, also if the caller has gone. If that fails, the log says so.
func (a *asking) write(ctx context.Context, failure string, writes ...table.Write) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	defer cancel()
	if err := a.Table.InOrder(ctx, writes...); err != nil {
		a.Log.WarnContext(ctx, failure, "error", err)
	}
}

// giveBack gives the places of the question back, and counts its refusal.
func (a *asking) giveBack(ctx context.Context, refused bool) {
	add := map[string]int64{attrAsking: -1}
	if refused {
		add[attrRefused] = 1
	}
	var writes []table.Write
	for _, key := range a.taken {
		writes = append(writes, table.Update{Key: key, Add: add})
	}
	if len(writes) > 0 {
		a.write(ctx, "the place of a stranger could not be given back", writes...)
	}
}
