package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// Kept is how long an answer stays, from the first request on.
	Kept = 24 * time.Hour
	// Lease is how long a request may take. After that it counts as lost, and may be executed
	// again; on one machine it is lost as soon as another process serves.
	Lease = time.Minute
	// pause is how long a client should wait for a request that is being executed; most take less
	// than that.
	pause = time.Second
)

// Request is a request that its client may repeat.
type Request struct {
	Workspace string
	// Key is the key that the client chose.
	Key string
	// Encrypted is the deployment whose data the answer has, if its repository encrypts them, else
	// "".
	Encrypted string
	// Fingerprint is the same for repetitions of a request, and different for other requests.
	Fingerprint [sha256.Size]byte
}

// Answer is the response to a request.
type Answer struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header,omitempty"`
	Body   []byte              `json:"body,omitempty"`
}

const kind = "answer"

const (
	attrOwner = "owner"
	attrState = "state"
	attrUntil = "until"

	stateClaimed  = "claimed"
	stateAnswered = "answered"
)

// content is the body, which is sealed, or encrypted by a deployment.
type content struct {
	Fingerprint []byte  `json:"fingerprint"`
	Answer      *Answer `json:"answer,omitempty"`
}

// Store keeps answers.
type Store struct {
	table  table.Table
	sealer secret.Sealer
	now    clock.Clock
	// process begins the owners of this process's claims; alone says that no other process
	// makes claims.
	process string
	alone   bool
}

// NewStore returns a store over a table.
func NewStore(t table.Table, sealer secret.Sealer, now clock.Clock) *Store {
	return &Store{table: t, sealer: sealer, now: now, process: rand.Text() + "."}
}

// Alone tells the store that no other process executes requests on its table. Then claims that
// this process did not make belong to a process that died, and are void.
func (s *Store) Alone() *Store {
	s.alone = true
	return s
}

// Attempt is one execution of a request.
type Attempt struct {
	store   *Store
	request Request
	// owner is unique to this attempt.
	owner string
}

// Claim returns the answer to the request, or else claims its key: then the Attempt is not
// nil, and the caller executes the request. A key of another request is a fault.Unprocessable,
// and a key whose request is being executed is a fault.Conflict.
func (s *Store) Claim(ctx context.Context, request Request) (*Answer, *Attempt, error) {
	attempt := &Attempt{store: s, request: request, owner: s.process + rand.Text()}
	held := false // by another attempt; most keys are new, so the first try reads nothing
	answer, err := record.DecideValue(ctx, s.table, func(ctx context.Context) (*Answer, record.Outbox, error) {
		claim := table.Absent()
		if held {
			item, err := record.Get(ctx, s.table, "idempotency key", request.key(), nil)
			if err != nil {
				return nil, record.Outbox{}, err
			}
			if item != nil {
				answer, lost, err := s.read(ctx, request, item)
				if err != nil || !lost {
					return answer, record.Outbox{}, err
				}
				claim = table.All(table.Equals(attrOwner, item.Text(attrOwner)), table.Equals(attrState, item.Text(attrState)))
			}
		}
		held = true
		put, err := s.put(ctx, attempt, claim)
		return nil, record.Write(put), err
	})
	if answer != nil || err != nil {
		return answer, nil, err
	}
	return nil, attempt, nil
}

func (r Request) key() table.Key { return keys.Answer(r.Workspace, r.Key) }

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return secret.Bound{Workspace: workspace, Resource: item.Key.PK}, err
	},
}

// bound returns the binding of an item's sealed content.
func (r Request) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: r.key().PK}
}

func (s *Store) put(ctx context.Context, a *Attempt, condition table.Cond) (table.Write, error) {
	body, err := s.seal(ctx, a.request, nil)
	if err != nil {
		return nil, err
	}
	now := s.now()
	own := table.Attrs{attrOwner: a.owner, attrState: stateClaimed, attrUntil: clock.Format(now.Add(Lease))}
	item := record.Item(a.request.key(), kind, now, own, body)
	item.Expires = now.Add(Kept)
	return table.Put{Item: item, If: condition}, nil
}

// read returns the state of a request's key: the answer, or that the holder of the key has
// lost it.
func (s *Store) read(ctx context.Context, request Request, item *table.Item) (answer *Answer, lost bool, err error) {
	r := record.Read(item, kind)
	created, until := r.Created(), r.Time(attrUntil)
	if err := r.Err(); err != nil {
		return nil, false, err
	}
	now := s.now()
	if !now.Before(created.Add(Kept)) {
		return nil, true, nil // the table has not erased it yet
	}
	stored, err := s.open(ctx, request, item)
	if err != nil {
		return nil, false, err
	}
	switch {
	case string(stored.Fingerprint) != string(request.Fingerprint[:]):
		return nil, false, fault.Shape(fault.Detail{
			Loc: []any{"header", "Idempotency-Key"}, Type: "value_error", Msg: "The key belongs to another request; each request has a key of its own",
		})
	case stored.Answer != nil:
		return stored.Answer, false, nil
	case now.Before(until) && (!s.alone || strings.HasPrefix(item.Text(attrOwner), s.process)):
		busy := fault.New(fault.Conflict, "A request with this Idempotency-Key is being executed. Repeat it to see the answer.")
		busy.RetryAfter = pause
		return nil, false, busy
	}
	return nil, true, nil
}

// Limit is how long the execution may take.
func (*Attempt) Limit() time.Duration { return Lease }

// AnswerWrite returns the write that stores the request's answer in the transaction that executes
// it. It fails if another attempt took the key, and the transaction fails with it. So the request
// is executed once, even if this process dies. Keep and Release do nothing after the commit.
func (a *Attempt) AnswerWrite(ctx context.Context, answer Answer) (table.Write, error) {
	change := record.Change(a.request.key(), a.store.now(), table.Attrs{attrState: stateAnswered}, a.held())
	if a.request.Encrypted != "" {
		change.Set[record.Deployment], change.Body = a.request.Encrypted, record.Encode(a.request.content(&answer))
		return change, nil
	}
	var err error
	if change.Body, err = a.store.seal(ctx, a.request, &answer); err != nil {
		return nil, err
	}
	return change, nil
}

// held is the condition that this attempt still holds the key and may answer it.
func (a *Attempt) held() table.Cond {
	return table.All(table.Equals(attrOwner, a.owner), table.Equals(attrState, stateClaimed))
}

// Keep stores the answer, unless another attempt has taken over a key whose lease was over.
func (a *Attempt) Keep(ctx context.Context, answer Answer) error {
	change, err := a.AnswerWrite(ctx, answer)
	if err != nil {
		return err
	}
	return a.end(ctx, "keep answer", change)
}

// Release gives the key back unused.
func (a *Attempt) Release(ctx context.Context) error {
	return a.end(ctx, "release idempotency key", table.Delete{Key: a.request.key(), If: a.held()})
}

// end applies a write, unless the key has another owner or an answer by now.
func (a *Attempt) end(ctx context.Context, what string, write table.Write) error {
	if _, err := record.Try(ctx, a.store.table, write); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (r Request) content(answer *Answer) content {
	return content{Fingerprint: r.Fingerprint[:], Answer: answer}
}

func (s *Store) seal(ctx context.Context, request Request, answer *Answer) ([]byte, error) {
	return record.Seal(ctx, s.sealer, request.bound(), "answer", request.content(answer))
}

func (s *Store) open(ctx context.Context, request Request, item *table.Item) (content, error) {
	if item.Text(record.Deployment) == "" {
		return record.Open[content](ctx, s.sealer, request.bound(), "answer", item.Body)
	}
	var c content
	if err := json.Unmarshal(item.Body, &c); err != nil {
		return content{}, fmt.Errorf("decode answer: %w", err)
	}
	return c, nil
}
