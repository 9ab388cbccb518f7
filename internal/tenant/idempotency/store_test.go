package idempotency_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const workspace = "0197a000-0000-7000-8000-000000000001"

type fixture struct {
	*idempotency.Store
	table *sqlite.Table
	clock *fixtures.Clock
}

// setUp opens a table whose own clock is the wall clock, so only the store itself notices that
// the test's clock moves.
func setUp(t *testing.T) *fixture {
	t.Helper()
	key := fixtures.Key(t)
	tb := fixtures.Table(t)
	c := fixtures.NewClockAt(time.Now().UTC(), 0)
	return &fixture{idempotency.NewStore(tb, key, c.Now), tb, c}
}

func request(key, body string) idempotency.Request {
	return idempotency.Request{Workspace: workspace, Key: key, Fingerprint: sha256.Sum256([]byte(body))}
}

var answer = idempotency.Answer{Status: 201, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"secret":"hunter2"}`)}

// claim claims a key that must be free.
func (f *fixture) claim(t *testing.T, r idempotency.Request) *idempotency.Attempt {
	t.Helper()
	found, attempt, err := f.Claim(t.Context(), r)
	if err != nil || attempt == nil || found != nil {
		t.Fatalf("claim: got %v, %v (%v), want an attempt", found, attempt, err)
	}
	return attempt
}

// replays checks that a repetition gets the answer.
func (f *fixture) replays(t *testing.T, r idempotency.Request, want idempotency.Answer) {
	t.Helper()
	found, attempt, err := f.Claim(t.Context(), r)
	if err != nil || attempt != nil || found == nil {
		t.Fatalf("repetition: got %v, %v (%v), want the answer", found, attempt, err)
	}
	if diff := cmp.Diff(want, *found); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

func (f *fixture) refuses(t *testing.T, r idempotency.Request, kind fault.Kind) *fault.Error {
	t.Helper()
	_, attempt, err := f.Claim(t.Context(), r)
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Kind != kind || attempt != nil {
		t.Fatalf("got %v (%v), want a fault of kind %s", attempt, err, kind)
	}
	return known
}

// TestClaimsOfADeadProcessAreVoid: they are void at once where no other process serves;
// answers are not.
func TestClaimsOfADeadProcessAreVoid(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	tb, now := fixtures.Table(t), time.Now
	before, after := &fixture{Store: idempotency.NewStore(tb, key, now).Alone()}, &fixture{Store: idempotency.NewStore(tb, key, now).Alone()}
	lost := before.claim(t, request("lost", "b"))
	before.refuses(t, request("lost", "b"), fault.Conflict)
	check.Must(t, before.claim(t, request("answered", "b")).Keep(t.Context(), answer))

	after.replays(t, request("answered", "b"), answer)
	after.claim(t, request("lost", "b"))
	after.refuses(t, request("lost", "b"), fault.Conflict)
	check.Must(t, lost.Keep(t.Context(), answer))
	// An answer of the lost attempt does not count.
	after.refuses(t, request("lost", "b"), fault.Conflict)

	// Other processes serve too, and refuse the request.
	(&fixture{Store: idempotency.NewStore(tb, key, now)}).refuses(t, request("lost", "b"), fault.Conflict)
}

func TestAnAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, want := range map[string]idempotency.Answer{"with all": answer, "empty": {Status: 204}} {
		check.Must(t, f.claim(t, request(name, "b")).Keep(t.Context(), want))
		f.replays(t, request(name, "b"), want)
		f.clock.Pass(idempotency.Lease + time.Second) // an answer has no lease
		f.replays(t, request(name, "b"), want)
	}
}

func TestAKeyBelongsToOneRequest(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	attempt := f.claim(t, request("k", "b"))
	refusal := f.refuses(t, request("k", "other"), fault.Unprocessable)
	if diff := cmp.Diff([]any{"header", "Idempotency-Key"}, refusal.Details[0].Loc); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	check.Must(t, attempt.Keep(t.Context(), answer))
	f.refuses(t, request("k", "other"), fault.Unprocessable)
	f.claim(t, request("k2", "b"))
	stranger := request("k", "b")
	stranger.Workspace = "0197a000-0000-7000-8000-000000000002"
	f.claim(t, stranger)
}

func TestARequestInFlightIsToBeWaitedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.claim(t, request("k", "b"))
	f.clock.Pass(idempotency.Lease - time.Millisecond)
	if refusal := f.refuses(t, request("k", "b"), fault.Conflict); refusal.RetryAfter <= 0 {
		t.Error("the refusal does not say when to come back")
	}
}

// TestAProcessThatDies leaves a claim behind, which the next process takes over. If the first
// process was only slow, its answer is not stored.
func TestAProcessThatDies(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	slow := f.claim(t, request("k", "b"))
	f.clock.Pass(idempotency.Lease)
	f.refuses(t, request("k", "other"), fault.Unprocessable)
	next := f.claim(t, request("k", "b"))
	f.refuses(t, request("k", "b"), fault.Conflict)
	if err := slow.Keep(t.Context(), answer); err != nil {
		t.Errorf("the answer of the slow one: %v", err)
	}
	if err := slow.Release(t.Context()); err != nil {
		t.Errorf("release of the slow one: %v", err)
	}
	f.refuses(t, request("k", "b"), fault.Conflict)
	check.Must(t, next.Keep(t.Context(), answer))
	f.replays(t, request("k", "b"), answer)
}

func TestAnAnswerThatComesLateCounts(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	slow := f.claim(t, request("k", "b"))
	f.clock.Pass(2 * idempotency.Lease)
	check.Must(t, slow.Keep(t.Context(), answer))
	f.replays(t, request("k", "b"), answer)
}

// TestATransactionSettlesItsKey stores the answer for repetitions together with the work.
// Nothing changes the answer afterwards.
func TestATransactionSettlesItsKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	work := func(name string, attempt *idempotency.Attempt) error {
		t.Helper()
		settled, err := attempt.AnswerWrite(t.Context(), answer)
		check.Must(t, err)
		return f.table.Transact(t.Context(), settled, table.Put{Item: table.Item{Key: keys.Workspace(name)}})
	}
	attempt := f.claim(t, request("k", "b"))
	check.Must(t, work("done", attempt))
	if err := attempt.Release(t.Context()); err != nil {
		t.Error(err)
	}
	f.replays(t, request("k", "b"), answer)
	if err := attempt.Keep(t.Context(), idempotency.Answer{Status: 204}); err != nil {
		t.Error(err)
	}
	f.clock.Pass(idempotency.Lease) // as if the process has died since
	f.replays(t, request("k", "b"), answer)

	slow := f.claim(t, request("k2", "b"))
	f.clock.Pass(idempotency.Lease)
	f.claim(t, request("k2", "b"))
	if err := work("done twice", slow); err == nil {
		t.Error("the work is done by who was overtaken")
	}
	if _, err := f.table.Get(t.Context(), keys.Workspace("done twice")); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("got %v, want nothing", err)
	}
}

func TestAReleasedKeyIsFree(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	check.Must(t, f.claim(t, request("k", "b")).Release(t.Context()))
	f.claim(t, request("k", "other"))
}

func TestAnAnswerIsForgotten(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	check.Must(t, f.claim(t, request("k", "b")).Keep(t.Context(), answer))
	item, err := f.table.Get(t.Context(), keys.Answer(workspace, "k"))
	check.Must(t, err)
	if got, want := item.Expires, f.clock.Now().Add(idempotency.Kept).Truncate(time.Second); !got.Equal(want) {
		t.Errorf("the table erases it at %s, want %s", got, want)
	}
	f.clock.Pass(idempotency.Kept - time.Millisecond)
	f.replays(t, request("k", "b"), answer)
	f.clock.Pass(time.Millisecond)
	f.claim(t, request("k", "other"))
}

// TestNothingIsStoredInClear reads the items of the table.
func TestNothingIsStoredInClear(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	r := request("k", "b")
	attempt := f.claim(t, r)
	for _, moment := range []string{"claimed", "answered"} {
		item, err := f.table.Get(t.Context(), keys.Answer(workspace, "k"))
		check.Must(t, err)
		if bytes.Contains(item.Body, []byte("hunter2")) || bytes.Contains(item.Body, r.Fingerprint[:]) || bytes.Contains(item.Body, []byte("fingerprint")) {
			t.Errorf("%s: the body is in clear", moment)
		}
		for name, value := range item.Attrs {
			if text, ok := value.(string); ok && len(text) == sha256.Size*2 {
				t.Errorf("%s: the attribute %s looks like a digest", moment, name)
			}
		}
		if moment == "claimed" {
			check.Must(t, attempt.Keep(t.Context(), answer))
		}
	}
	// A text that is sealed for one workspace and key cannot be opened for another.
	item, err := f.table.Get(t.Context(), keys.Answer(workspace, "k"))
	check.Must(t, err)
	item.Key = keys.Answer(workspace, "copy")
	check.Must(t, f.table.Transact(t.Context(), table.Put{Item: *item}))
	if found, attempt, err := f.Claim(t.Context(), request("copy", "b")); err == nil {
		t.Errorf("a copied answer: got %v, %v", found, attempt)
	}
}

// TestOneOfManyIsExecuted races claims of one key, at two stores over one table, first when
// the key is new and then when a lease is over.
func TestOneOfManyIsExecuted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, moment := range []string{"a new key", "a lease that is over"} {
		var wg sync.WaitGroup
		attempts := make(chan *idempotency.Attempt, 50)
		for range 50 {
			wg.Go(func() {
				_, attempt, err := f.Claim(context.WithoutCancel(t.Context()), request("k", "b"))
				switch {
				case attempt != nil:
					attempts <- attempt
				case !fault.Is(err, fault.Conflict):
					t.Errorf("%s: %v", moment, err)
				}
			})
		}
		wg.Wait()
		if len(attempts) != 1 {
			t.Errorf("%s: %d of 50 execute the request", moment, len(attempts))
		}
		f.clock.Pass(idempotency.Lease)
	}
}

func TestWhatTheTableSaysIsAnError(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, attempt, err := f.Claim(ctx, request("k", "b")); err == nil || attempt != nil {
		t.Errorf("claim: got %v (%v)", attempt, err)
	}
	attempt := f.claim(t, request("k", "b"))
	if err := attempt.Keep(ctx, answer); err == nil {
		t.Error("keep: got no error")
	}
	if err := attempt.Release(ctx); err == nil {
		t.Error("release: got no error")
	}
}

// TestAnAnswerOfADeploymentThatEncrypts is encrypted by the deployment's handlers, also in the
// transaction that executes its request.
func TestAnAnswerOfADeploymentThatEncrypts(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const mask = 0x55
	handlers := func(_ context.Context, _, _ string, _ graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
		for _, value := range asked.Values {
			masked := bytes.Clone(value.Data)
			for i := range masked {
				masked[i] ^= mask
			}
			answer.Values = append(answer.Values, masked)
		}
		return answer, nil
	}
	encrypted, err := cipher.Open(t.Context(), f.table, f.clock.Now, handlers)
	check.Must(t, err)
	check.Must(t, encrypted.Transact(t.Context(), cipher.Mark(workspace, "d", f.clock.Now())))
	key := fixtures.Key(t)
	f.Store = idempotency.NewStore(encrypted, key, f.clock.Now)
	for name, settle := range map[string]func(*idempotency.Attempt) error{
		"kept": func(a *idempotency.Attempt) error { return a.Keep(t.Context(), answer) },
		"settled": func(a *idempotency.Attempt) error {
			write, err := a.AnswerWrite(t.Context(), answer)
			check.Must(t, err)
			return encrypted.Transact(t.Context(), write)
		},
	} {
		r := request(name, "b")
		r.Encrypted = "d"
		check.Must(t, settle(f.claim(t, r)))
		f.replays(t, r, answer)
		item, err := f.table.Get(t.Context(), keys.Answer(workspace, name))
		check.Must(t, err)
		for i := range item.Body {
			item.Body[i] ^= mask
		}
		if !bytes.Contains(item.Body, record.Encode(answer.Body)) {
			t.Errorf("%s: the handlers did not get the answer", name)
		}
	}
}

// overtaken is a table in which something happens after the first read of an item.
type overtaken struct {
	table.Table

	happen func()
}

func (o *overtaken) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := o.Table.Get(ctx, key)
	if happen := o.happen; happen != nil {
		o.happen = nil
		happen()
	}
	return item, err
}

// TestATakeOverIsOvertaken lets other requests settle an expired claim, between the read that
// finds the claim expired and the write that takes it over.
func TestATakeOverIsOvertaken(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	tb := fixtures.Table(t)
	c := fixtures.NewClockAt(setUp(t).clock.Now(), 0)
	f := &fixture{idempotency.NewStore(tb, key, c.Now), tb, c}
	between := &overtaken{Table: tb}
	late := &fixture{idempotency.NewStore(between, key, c.Now), tb, c}

	f.claim(t, request("claimed", "b"))
	slow := f.claim(t, request("answered", "b"))
	c.Pass(idempotency.Lease)
	between.happen = func() { f.claim(t, request("claimed", "b")) }
	late.refuses(t, request("claimed", "b"), fault.Conflict)
	between.happen = func() {
		if err := slow.Keep(t.Context(), answer); err != nil {
			t.Error(err)
		}
	}
	late.replays(t, request("answered", "b"), answer)
}
