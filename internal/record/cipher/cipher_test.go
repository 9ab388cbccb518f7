package cipher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/table/tabletest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace, deployment = "w1", "d1"
	thread, run           = "t1", "r1"
	secret                = "hunter2"
)

// handlers stand for an agent. They write the context and the name of a value before the reversed
// value, and refuse to decrypt a value that has another context.
type handlers struct {
	questions []graph.Encryption
	err       error
	// forgets says that no question is kept. spoil, if not nil, changes an answer.
	forgets bool
	spoil   func(*graph.Ciphered)
	// contextOf, if not nil, makes the context of a request from its user.
	contextOf func(user json.RawMessage) json.RawMessage
}

func (h *handlers) ask(_ context.Context, _, _ string, operation graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
	if !h.forgets {
		h.questions = append(h.questions, asked)
	}
	if h.contextOf != nil && asked.User != nil {
		asked.Context = h.contextOf(asked.User)
	}
	answer.Context = asked.Context
	for _, value := range asked.Values {
		own := value.Context
		if asked.Context != nil {
			own = asked.Context
		}
		begin := append([]byte(string(own)+"|"+value.Model+"."+value.Field), '|')
		made := append(bytes.Clone(begin), reversed(value.Data)...)
		if operation == graph.OperationDecrypt {
			if !bytes.HasPrefix(value.Data, begin) {
				return answer, errors.New("a value was encrypted under another context, or as something else")
			}
			made = reversed(value.Data[len(begin):])
		}
		answer.Values = append(answer.Values, made)
	}
	if h.spoil != nil {
		h.spoil(&answer)
	}
	return answer, h.err
}

func reversed(data []byte) []byte {
	made := make([]byte, len(data))
	for i, b := range data {
		made[len(data)-1-i] = b
	}
	return made
}

// open returns a table that encrypts one deployment, and the table below it.
func open(t *testing.T, h *handlers) (encrypted *cipher.Table, below table.Table) {
	t.Helper()
	below = fixtures.Table(t)
	check.Must(t, below.Transact(t.Context(), cipher.Mark(workspace, deployment, time.Now())))
	encrypted, err := cipher.Open(t.Context(), below, clock.System, h.ask)
	check.Must(t, err)
	return encrypted, below
}

func put(key table.Key, body string, attrs table.Attrs) table.Put {
	return table.Put{Item: table.Item{Key: key, Attrs: record.Attrs("k", time.Now(), attrs), Body: []byte(body)}}
}

// writes has an item of each kind, and the attributes with contents.
func writes() []table.Write {
	request := `{"assistant_id":"` + secret + `","config":{"a":"hunter2"},"input":["hunter2"],"metadata":{"why":"hunter2"}}`
	return []table.Write{
		put(keys.Thread(workspace, deployment, thread), `{"metadata":{"note":"hunter2"},"interrupts":{"q":"hunter2"}}`, table.Attrs{"status": "idle"}),
		put(keys.Run(workspace, deployment, thread, run), request, table.Attrs{"failure": `{"message":"hunter2"}`, "interrupts": `["hunter2"]`, "refusal": ""}),
		put(keys.RunRequest(workspace, deployment, thread, run), request, nil),
		put(keys.Event(workspace, deployment, thread, 3), `[{"data":"hunter2"}]`, nil),
		put(keys.Checkpoint(workspace, deployment, thread, 0), `{"values":{"a":"hunter2"}}`, table.Attrs{"base": int64(0)}),
		put(keys.Frame(workspace, deployment, thread, 0), "\x00\xff hunter2", nil),
		put(keys.OriginalCheckpoint(workspace, deployment, thread, run), `{"a":"hunter2"}`, nil),
		put(keys.Assistant(workspace, deployment, "a"), `{"name":"hunter2","metadata":{"n":"hunter2"},"config":{},"context":{"c":"hunter2"}}`, nil),
		put(keys.Cron(workspace, deployment, "c"), `{"metadata":{"n":"hunter2"},"request":{"input":"hunter2"},"schedule":"hunter2"}`, nil),
		put(keys.StoreItem(workspace, deployment, []string{"n"}, "k"), `{"text":"hunter2"}`, nil),
		put(keys.StoreVectors(keys.StoreItem(workspace, deployment, []string{"n"}, "k")), "hunter2!", nil),
		put(keys.WebhookDelivery(workspace, run, "x"), `{"body":"hunter2","deployment":"`+deployment+`"}`, nil),
		put(keys.Answer(workspace, "k"), `{"answer":"hunter2"}`, table.Attrs{"deployment": deployment}),
		put(keys.ThreadTTL(workspace, deployment, thread), `{"minutes":7}`, nil),
	}
}

// normal returns JSON with its members in order, and any other text as it is.
func normal(text []byte) string {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return string(text)
	}
	return string(record.Encode(value))
}

func TestItemsOfAllKindsAreEncrypted(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, below := open(t, &h)
	all := writes()
	check.Must(t, encrypted.Transact(cipher.For(t.Context(), cipher.Request{Context: json.RawMessage(`{"tenant":"a"}`)}), all...))
	if len(h.questions) != 1 {
		t.Errorf("a transaction is %d questions", len(h.questions))
	}
	var of []table.Key
	for _, write := range all {
		of = append(of, write.Target())
	}
	stored, err := below.GetBatch(t.Context(), of...)
	check.Must(t, err)
	for _, item := range stored {
		if text := string(record.Encode(item)) + string(item.Body); strings.Contains(text, secret) {
			t.Errorf("%v is stored as %s", item.Key, text)
		}
	}
	h.questions = nil
	found, err := encrypted.GetBatch(t.Context(), of...)
	check.Must(t, err)
	if len(h.questions) != 1 {
		t.Errorf("a read is %d questions", len(h.questions))
	}
	for i, item := range found {
		want := all[i].(table.Put).Item
		if normal(item.Body) != normal(want.Body) || !cmp.Equal(item.Attrs, want.Attrs) {
			t.Errorf("%v is read as %s with %v", item.Key, item.Body, item.Attrs)
		}
	}
	// The items that the table below returned are not changed.
	if again, err := below.GetBatch(t.Context(), of...); err != nil || !cmp.Equal(again, stored) {
		t.Errorf("the stored items have changed: %v", err)
	}
}

func TestOtherDeploymentsAreNotAsked(t *testing.T) {
	t.Parallel()
	h := handlers{err: errors.New("asked")}
	encrypted, below := open(t, &h)
	key := keys.Thread(workspace, "d2", thread)
	check.Must(t, encrypted.Transact(t.Context(), put(key, `{"a":"plain"}`, nil)))
	item, err := encrypted.Get(t.Context(), key)
	stored, errBelow := below.Get(t.Context(), key)
	if err := errors.Join(err, errBelow); err != nil || !cmp.Equal(item, stored) || len(h.questions) > 0 {
		t.Errorf("got %v, %v, %d questions", item, err, len(h.questions))
	}
}

// TestAttackBytesThatLookEncrypted has an agent store bytes that name another deployment, whose
// handlers are not asked, and a size. An item that was stored before the mark claims a size, too.
func TestAttackBytesThatLookEncrypted(t *testing.T) {
	t.Parallel()
	h := handlers{err: errors.New("asked")}
	encrypted, below := open(t, &h)
	const named = `{"d":"` + deployment + `","n":1099511627776}`
	forged := "\x00slipway encrypted 1\x00" + string(rune(len(named))) + named + "rest"
	theirs, early := keys.Frame(workspace, "d2", thread, 0), keys.Frame(workspace, deployment, thread, 0)
	check.Must(t, encrypted.Transact(t.Context(), put(theirs, forged, nil)))
	check.Must(t, below.Transact(t.Context(), put(early, forged, nil)))
	for _, ctx := range []context.Context{t.Context(), table.WithoutContents(t.Context())} {
		if item, err := encrypted.Get(ctx, theirs); err != nil || string(item.Body) != forged || len(h.questions) > 0 {
			t.Errorf("got %v, %v after %d questions", item, err, len(h.questions))
		}
	}
	if item, err := encrypted.Get(table.WithoutContents(t.Context()), early); err != nil || len(item.Body) != len(forged) {
		t.Errorf("got %v, %v", item, err)
	}
}

func TestAMarkCountsFromItsTransactionOn(t *testing.T) {
	t.Parallel()
	var h handlers
	below := fixtures.Table(t)
	encrypted, err := cipher.Open(t.Context(), below, clock.System, h.ask)
	check.Must(t, err)
	key := keys.Thread(workspace, deployment, thread)
	before, after := put(key, `{"metadata":{"a":"before"}}`, nil), put(key, `{"metadata":{"a":"hunter2"}}`, nil)
	for _, write := range []table.Write{before, cipher.Mark(workspace, deployment, time.Now())} {
		check.Must(t, encrypted.Transact(t.Context(), write))
	}
	if item, err := encrypted.Get(t.Context(), key); err != nil || !strings.Contains(string(item.Body), "before") {
		t.Errorf("what was stored before is read as %v, %v", item, err)
	}
	check.Must(t, encrypted.Transact(t.Context(), after))
	if item, err := below.Get(t.Context(), key); err != nil || strings.Contains(string(item.Body), secret) {
		t.Errorf("stored as %v, %v", item, err)
	}
}

// TestAMarkThatIsRefused counts for nothing, unless another transaction makes the mark, too.
func TestAMarkThatIsRefused(t *testing.T) {
	t.Parallel()
	h := handlers{err: errors.New("asked")}
	below := fixtures.Table(t)
	encrypted, err := cipher.Open(t.Context(), below, clock.System, h.ask)
	check.Must(t, err)
	mark := cipher.Mark(workspace, deployment, time.Now())
	lost := table.Check{Key: table.Key{PK: "p", SK: "revision"}, If: table.Present()}
	refused := func() {
		t.Helper()
		if _, ok := errors.AsType[*table.ConditionFailed](encrypted.Transact(t.Context(), mark, lost)); !ok {
			t.Error("the mark was not refused")
		}
	}
	refused()
	write := put(keys.Thread(workspace, deployment, thread), `{"metadata":{"a":"plain"}}`, nil)
	if err := encrypted.Transact(t.Context(), write); err != nil {
		t.Errorf("after the refusal: %v", err)
	}
	check.Must(t, encrypted.Transact(t.Context(), mark))
	refused()
	if err := encrypted.Transact(t.Context(), write); !cipher.IsUnavailable(err) {
		t.Errorf("after the mark: %v", err)
	}
	key := keys.Thread(workspace, "d2", thread)
	if err := encrypted.InOrder(t.Context(), cipher.Mark(workspace, "d2", time.Now()), lost); err == nil {
		t.Error("the writes in order were not refused")
	}
	if err := encrypted.Transact(t.Context(), put(key, `{}`, nil)); !cipher.IsUnavailable(err) {
		t.Errorf("after a mark that may be written: %v", err)
	}
}

// TestAWriteWithoutAContext checks which context it has: that of its own item, of its run, of its
// thread, or of the items that Like names.
func TestAWriteWithoutAContext(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, _ := open(t, &h)
	under := func(tenant string, write table.Write) {
		t.Helper()
		check.Must(t, encrypted.Transact(cipher.For(t.Context(), cipher.Request{Context: json.RawMessage(`"` + tenant + `"`)}), write))
	}
	theThread, theRun, cron := keys.Thread(workspace, deployment, thread), keys.Run(workspace, deployment, thread, run), keys.Cron(workspace, deployment, "c")
	under("of thread", put(theThread, `{}`, nil))
	under("of run", put(theRun, `{}`, nil))
	under("of cron", put(cron, `{}`, nil))
	event := put(keys.Event(workspace, deployment, thread, 1), `[]`, nil)
	elsewhere := put(keys.Thread(workspace, deployment, "t2"), `{}`, nil)
	for name, c := range map[string]struct {
		ctx    context.Context
		writes []table.Write
		want   string
	}{
		"of its own item": {t.Context(), []table.Write{table.Update{Key: theThread, Body: []byte(`{}`)}, table.Update{Key: theRun, Set: table.Attrs{"n": int64(1)}}}, `"of thread"`},
		"of its run":      {t.Context(), []table.Write{event, table.Update{Key: theRun, Set: table.Attrs{"n": int64(2)}}}, `"of run"`},
		"of its thread":   {t.Context(), []table.Write{put(keys.Event(workspace, deployment, thread, 2), `[]`, nil)}, `"of thread"`},
		"like a cron":     {cipher.Like(t.Context(), cron), []table.Write{elsewhere}, `"of cron"`},
		"none":            {t.Context(), []table.Write{put(keys.Thread(workspace, deployment, "t3"), `{}`, nil)}, ``},
	} {
		h.questions = nil
		check.Must(t, encrypted.Transact(c.ctx, c.writes...))
		if got := string(h.questions[0].Values[0].Context); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestATransactionOfSeveralPartsHasOneContext although the repository makes another context of the
// same user each time.
func TestATransactionOfSeveralPartsHasOneContext(t *testing.T) {
	t.Parallel()
	made := 0
	h := handlers{contextOf: func(user json.RawMessage) json.RawMessage {
		made++
		return record.Encode(map[string]any{"user": user, "made": made})
	}}
	encrypted, _ := open(t, &h)
	body := `{"a":"` + strings.Repeat("x", 5<<20) + `"}`
	var all []table.Write
	for number := range int64(3) {
		all = append(all, put(keys.Checkpoint(workspace, deployment, thread, number), body, nil))
	}
	check.Must(t, encrypted.Transact(cipher.For(t.Context(), cipher.Request{User: json.RawMessage(`{"identity":"a"}`)}), all...))
	if made != 1 || len(h.questions) < 2 {
		t.Errorf("%d questions have %d contexts", len(h.questions), made)
	}
	for _, write := range all {
		if item, err := encrypted.Get(t.Context(), write.Target()); err != nil || string(item.Body) != body {
			t.Errorf("%v: %v", write.Target(), err)
		}
	}
}

func TestAnAgentThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, below := open(t, &h)
	key := keys.Thread(workspace, deployment, thread)
	check.Must(t, encrypted.Transact(t.Context(), put(key, `{"metadata":{"a":"hunter2"}}`, nil)))
	before, err := below.Get(t.Context(), key)
	check.Must(t, err)
	h.err = fault.New(fault.Unavailable, "It is away.")
	_, ofGet := encrypted.Get(t.Context(), key)
	_, ofQuery := encrypted.Query(t.Context(), table.Query{PK: keys.Thread(workspace, deployment, thread).PK})
	for _, err := range []error{ofGet, ofQuery, encrypted.Transact(t.Context(), put(key, `{}`, nil)), encrypted.InOrder(t.Context(), put(key, `{}`, nil))} {
		if told, ok := errors.AsType[*fault.Error](err); !ok || told.Message != "It is away." || !errors.Is(err, table.ErrBusy) || !cipher.IsUnavailable(err) {
			t.Errorf("got %v", err)
		}
	}
	if after, err := below.Get(t.Context(), key); err != nil || !cmp.Equal(after, before) {
		t.Errorf("the item has become %v, %v", after, err)
	}
	if err := table.Erase(t.Context(), encrypted, table.Query{PK: keys.Thread(workspace, deployment, thread).PK}, nil); err != nil {
		t.Errorf("erase: %v", err)
	}
}

// TestItemsWithoutContentsHaveTheirPlainSize: a quota gives back as many bytes as it has counted.
// No handler is asked for them, and damaged items can be erased, too.
func TestItemsWithoutContentsHaveTheirPlainSize(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, below := open(t, &h)
	all := writes()
	large := cipher.Request{Context: json.RawMessage(`{"tenant":"` + strings.Repeat("a", 1000) + `"}`)}
	check.Must(t, encrypted.Transact(cipher.For(t.Context(), large), all...))
	h.err = errors.New("asked")
	for _, write := range all {
		item, err := encrypted.Get(table.WithoutContents(t.Context()), write.Target())
		if err != nil || len(item.Body) != len(write.(table.Put).Item.Body) {
			t.Errorf("%v has %v, %v", write.Target(), item, err)
		}
	}
	key := keys.Event(workspace, deployment, thread, 3)
	stored, err := below.Get(t.Context(), key)
	check.Must(t, err)
	check.Must(t, below.Transact(t.Context(), table.Update{Key: key, Body: stored.Body[:25]}))
	check.Must(t, table.Erase(t.Context(), encrypted, table.Query{PK: keys.Thread(workspace, deployment, thread).PK}, nil))
	if left, err := table.AllItems(t.Context(), below, table.Query{PK: keys.Thread(workspace, deployment, thread).PK}); err != nil || len(left) > 0 {
		t.Errorf("%d items are left, %v", len(left), err)
	}
}

func TestContentsThatAreGone(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, below := open(t, &h)
	all := writes()
	check.Must(t, encrypted.Transact(t.Context(), all...))
	h.err = cipher.ErrGone
	for _, write := range all[:2] {
		item, err := encrypted.Get(t.Context(), write.Target())
		if err != nil || normal(item.Body) != "{}" || item.Text("failure") != "" {
			t.Errorf("read %v, %v", item, err)
		}
		if err := encrypted.Transact(t.Context(), write); err != nil {
			t.Errorf("write: %v", err)
		}
		if item, err := below.Get(t.Context(), write.Target()); err != nil || strings.Contains(string(record.Encode(item.Attrs))+string(item.Body), secret) {
			t.Errorf("stored %v, %v", item, err)
		}
	}
	if err := encrypted.Erase(t.Context(), workspace, deployment); err != nil {
		t.Error(err)
	}
	if note, err := below.Get(t.Context(), keys.Encrypted(workspace, deployment)); err != nil || note.Expires.IsZero() {
		t.Errorf("the note is %v, %v", note, err)
	}
}

func TestTheItemOfAFailedCondition(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, _ := open(t, &h)
	write := put(keys.Thread(workspace, deployment, thread), `{"metadata":{"a":"hunter2"}}`, nil)
	write.If = table.Absent()
	watcher := encrypted.Watch(write.Item.Key)
	defer watcher.Stop()
	check.Must(t, encrypted.Transact(t.Context(), write))
	failed, ok := errors.AsType[*table.ConditionFailed](encrypted.Transact(t.Context(), write))
	if !ok || normal(failed.Item.Body) != normal(write.Item.Body) {
		t.Errorf("got %v", failed)
	}
	<-watcher.C()
	if item := watcher.Item(); item != nil {
		t.Errorf("the watcher knows %v", item)
	}
}

// TestAttackADamagedBody cuts an encrypted body off at each length.
func TestAttackADamagedBody(t *testing.T) {
	t.Parallel()
	var h handlers
	encrypted, below := open(t, &h)
	key := keys.Thread(workspace, deployment, thread)
	check.Must(t, encrypted.Transact(t.Context(), put(key, `{"metadata":{"a":"hunter2"}}`, nil)))
	item, err := below.Get(t.Context(), key)
	check.Must(t, err)
	for length := range len(item.Body) {
		if length < len("\x00slipway encrypted 1\x00") {
			continue // it does not look encrypted, and the reader's decoder refuses it
		}
		check.Must(t, below.Transact(t.Context(), table.Update{Key: key, Body: item.Body[:length]}))
		if found, err := encrypted.Get(t.Context(), key); err == nil {
			t.Fatalf("%d of %d bytes are read as %s", length, len(item.Body), found.Body)
		}
	}
}

// TestAttackNonsense has handlers that answer with something else than what was asked. Each answer
// is a named failure, and writes nothing.
func TestAttackNonsense(t *testing.T) {
	t.Parallel()
	each := func(made string) func(*graph.Ciphered) {
		return func(answer *graph.Ciphered) {
			for i := range answer.Values {
				answer.Values[i] = []byte(made)
			}
		}
	}
	for name, spoil := range map[string]func(*graph.Ciphered){
		"null": each("null"), "a list": each("[]"), "no JSON": each("\xff{"), "nothing": each(""),
		"fewer values": func(answer *graph.Ciphered) { answer.Values = answer.Values[1:] },
	} {
		var h handlers
		encrypted, _ := open(t, &h)
		all := []table.Write{
			put(keys.Thread(workspace, deployment, thread), `{"metadata":{"a":"b"},"c":1}`, nil),
			put(keys.Run(workspace, deployment, thread, run), `{"input":["b"],"metadata":{}}`, nil),
			put(keys.Cron(workspace, deployment, "c"), `{"metadata":{},"request":{},"schedule":"b"}`, nil),
		}
		check.Must(t, encrypted.Transact(t.Context(), all...))
		h.spoil = spoil
		for _, write := range all {
			if item, err := encrypted.Get(t.Context(), write.Target()); !cipher.IsUnavailable(err) || !strings.HasPrefix(err.Error(), "The repository's own encryption has ") {
				t.Errorf("%s: %v is read as %v, %v", name, write.Target(), item, err)
			}
		}
	}
	var h handlers
	encrypted, below := open(t, &h)
	h.spoil = func(answer *graph.Ciphered) {
		answer.Context = json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)
	}
	key := keys.Thread(workspace, deployment, thread)
	if err := encrypted.Transact(t.Context(), put(key, `{}`, nil)); !cipher.IsUnavailable(err) {
		t.Errorf("a large context is taken: %v", err)
	}
	if _, err := below.Get(t.Context(), key); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("it is written: %v", err)
	}
}

// TestConformance runs the suite of the table: nothing changes for items without contents.
func TestConformance(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(t *testing.T, dir string, now clock.Clock) (table.Table, func() error) {
		t.Helper()
		below := fixtures.TableAt(t, dir+"/table.db", sqlite.WithClock(now))
		var h handlers
		encrypted, err := cipher.Open(t.Context(), below, now, h.ask)
		if err == nil {
			err = encrypted.Transact(t.Context(), cipher.Mark(workspace, deployment, now()))
		}
		check.Must(t, err)
		return encrypted, below.Close
	})
}
