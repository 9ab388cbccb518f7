package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestACreatedThreadIsReadAsItWasCreated(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newRef()
	created, err := s.Create(t.Context(), ref, json.RawMessage(`{"user":"u"}`), nil, false)
	check.Must(t, err)
	got, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("read thread (-created +read):\n%s", diff)
	}
	want := thread.Thread{
		Ref: ref, Created: created.Created, Updated: created.Created, Status: thread.StatusIdle,
		Metadata: json.RawMessage(`{"user":"u"}`), Interrupts: json.RawMessage(`{}`), IdleView: thread.IdleView{Status: thread.StatusIdle}, Lock: thread.Lock{Checkpoint: -1},
		Part: quota.Part(keys.UsePart(ref.Thread)),
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("created thread (-want +got):\n%s", diff)
	}
}

func TestAThreadWithoutIDGetsOne(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	created, err := s.Create(t.Context(), thread.Ref{Workspace: "w", Deployment: "d"}, nil, nil, false)
	check.Must(t, err)
	if !id.Valid(created.Thread) || string(created.Metadata) != `{}` {
		t.Errorf("got id %q with metadata %s", created.Thread, created.Metadata)
	}
	if _, err := s.Get(t.Context(), created.Ref); err != nil {
		t.Error(err)
	}
}

func TestAThreadThatExistsIsAConflictOrKept(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newRef()
	first, err := s.Create(t.Context(), ref, json.RawMessage(`{"n":1}`), nil, false)
	check.Must(t, err)
	if _, err := s.Create(t.Context(), ref, json.RawMessage(`{"n":2}`), nil, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	kept, err := s.Create(t.Context(), ref, json.RawMessage(`{"n":2}`), nil, true)
	check.Must(t, err)
	if diff := cmp.Diff(first, kept); diff != "" {
		t.Errorf("kept thread (-first +kept):\n%s", diff)
	}
}

func TestOneOfManyCreatesAThread(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newRef()
	errs := make([]error, 16)
	var clients sync.WaitGroup
	for i := range errs {
		clients.Go(func() { _, errs[i] = s.Create(t.Context(), ref, nil, nil, false) })
	}
	clients.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
		} else if !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want a conflict", err)
		}
	}
	if created != 1 {
		t.Errorf("%d created the thread, want 1", created)
	}
}

// watched is a table that signals when one of its items is watched.
type watched struct {
	*meter
	begun chan struct{}
}

func (w watched) Watch(key table.Key) table.Watcher {
	defer close(w.begun)
	return w.Table.Watch(key)
}

// TestAThreadIsCreatedWhereOneIsBeingDeleted makes the deletion wait until the creation waits.
func TestAThreadIsCreatedWhereOneIsBeingDeleted(t *testing.T) {
	t.Parallel()
	_, m := newStore(t)
	w := watched{m, make(chan struct{})}
	s, ref := thread.NewStore(w, ticking(), quota.Limits{}, slog.Default()), newRef()
	if _, err := s.Create(t.Context(), ref, json.RawMessage(`{"n":1}`), nil, false); err != nil {
		t.Fatal(err)
	}
	buried := make(chan struct{})
	m.committed = func(writes []table.Write) {
		if put, ok := writes[0].(table.Put); ok && len(put.Item.Body) == 0 {
			close(buried)
			<-w.begun
		}
	}
	deleted := make(chan error)
	go func() { deleted <- s.Delete(t.Context(), ref) }()
	<-buried
	created, err := s.Create(t.Context(), ref, json.RawMessage(`{"n":2}`), nil, false)
	if err != nil || string(created.Metadata) != `{"n":2}` {
		t.Errorf("got %s (%v)", created.Metadata, err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestAnUnknownThreadIsNotFound(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newRef()
	if _, err := s.Create(t.Context(), ref, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]thread.Ref{
		"id":         {Workspace: "w", Deployment: "d", Thread: newRef().Thread},
		"deployment": {Workspace: "w", Deployment: "e", Thread: ref.Thread},
		"workspace":  {Workspace: "x", Deployment: "d", Thread: ref.Thread},
	} {
		if _, err := s.Get(t.Context(), other); !fault.Is(err, fault.NotFound) {
			t.Errorf("another %s: got %v, want not found", name, err)
		}
	}
}

func TestTheLockChangesOnlyFromTheEpochThatWasRead(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	read, err := s.Create(t.Context(), newRef(), nil, nil, false)
	check.Must(t, err)
	occupy := func(run string) table.Write {
		change := read.ChangeLock(start)
		read.SetActive(&change, run, time.Time{})
		return change
	}
	check.Must(t, m.Transact(t.Context(), occupy("r1")))
	err = m.Transact(t.Context(), occupy("r2"))
	if _, ok := errors.AsType[*table.ConditionFailed](err); !ok {
		t.Errorf("got %v, want a failed condition", err)
	}
	got, err := s.Get(t.Context(), read.Ref)
	check.Must(t, err)
	if diff := cmp.Diff(thread.Lock{Epoch: 1, Run: "r1", Busy: true, Checkpoint: -1}, got.Lock); diff != "" {
		t.Errorf("lock (-want +got):\n%s", diff)
	}
}

func TestEraseRemovesEverythingOfADeployment(t *testing.T) {
	t.Parallel()
	s, m := newStore(t)
	const threads = 25 // more than a page of threads
	refs := make([]thread.Ref, threads)
	for i := range refs {
		refs[i] = newRef()
		if _, err := s.Create(t.Context(), refs[i], nil, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	log := thread.NewLog(refs[0], thread.Empty())
	for i := range 150 { // more items than a transaction can delete
		log = advance(t, m, log, `{"n":`+strconv.Itoa(i)+`}`)
	}
	other := thread.Ref{Workspace: "w", Deployment: "other", Thread: refs[0].Thread}
	if _, err := s.Create(t.Context(), other, nil, nil, false); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = s.Erase(t.Context(), "w", "d"); err != nil {
			t.Fatal(err)
		}
	}
	for _, ref := range refs {
		page, err := m.Query(t.Context(), table.Query{PK: keys.Thread(ref.Workspace, ref.Deployment, ref.Thread).PK})
		if err != nil || len(page.Items) > 0 {
			t.Errorf("thread %s has %d items left, error %v", ref.Thread, len(page.Items), err)
		}
	}
	if _, err := s.Get(t.Context(), other); err != nil {
		t.Errorf("the other deployment's thread: %v", err)
	}
}

// TestErasePagesKnowTheTime: a caller with little time left gets one thread erased with each
// call, so it makes progress and is not cut off.
func TestErasePagesKnowTheTime(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	refs := []thread.Ref{newRef(), newRef(), newRef()}
	for _, ref := range refs {
		if _, err := s.Create(t.Context(), ref, nil, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	for erased := range refs {
		short, cancel := context.WithTimeout(t.Context(), 14*time.Second)
		more, err := s.Erase(short, "w", "d")
		cancel()
		left := 0
		for _, ref := range refs {
			if _, err := s.Get(t.Context(), ref); err == nil {
				left++
			}
		}
		if want := len(refs) - erased - 1; err != nil || left != want || more != (want > 0) {
			t.Errorf("after %d calls %d threads are left, more: %t (%v)", erased+1, left, more, err)
		}
	}
}

func TestThreadsAreThereWhenTheTableIsOpenedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "table.db")
	first := fixtures.TableAt(t, path)
	ref, log := newLog()
	created, err := thread.NewStore(first, ticking(), quota.Limits{}, slog.Default()).Create(t.Context(), ref, json.RawMessage(`{"a":1}`), nil, false)
	check.Must(t, err)
	for i := range 20 {
		log = advance(t, first, log, `{"messages":["`+strconv.Itoa(i)+`"]}`)
	}
	check.Must(t, first.Close())
	s := thread.NewStore(fixtures.TableAt(t, path), ticking(), quota.Limits{}, slog.Default())
	got, err := s.Get(t.Context(), ref)
	check.Must(t, err)
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("thread (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(string(log.Values.JSON()), string(stateAt(t, s, ref, 1000).Values.JSON())); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
}

// TestMetadataHasALimit checks the limit also for metadata that grows by a change.
func TestMetadataHasALimit(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	member := func(name string) json.RawMessage {
		return json.RawMessage(`{"` + name + `":"` + strings.Repeat("x", 200<<10) + `"}`)
	}
	created, err := s.Create(t.Context(), newRef(), member("a"), nil, false)
	check.Must(t, err)
	_, patched := s.Patch(t.Context(), created.Ref, thread.Patch{Metadata: member("b")})
	_, made := s.Create(t.Context(), newRef(), json.RawMessage(`{"a":"`+strings.Repeat("x", 256<<10)+`"}`), nil, false)
	for _, err := range []error{patched, made} {
		if !fault.Is(err, fault.Unprocessable) {
			t.Errorf("got %v, want words", err)
		}
	}
	if _, err := s.Patch(t.Context(), created.Ref, thread.Patch{Metadata: member("a")}); err != nil {
		t.Error(err)
	}
}
