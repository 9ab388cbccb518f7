package kms_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/kms"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var bound = secret.Bound{Workspace: "workspace", Resource: "resource"}

func open(t *testing.T, cfg kms.Config) *kms.Key {
	t.Helper()
	key, err := kms.Open(t.Context(), cfg)
	check.Must(t, err)
	return key
}

func seal(t *testing.T, key *kms.Key, plain string) []byte {
	t.Helper()
	sealed, err := key.Seal(t.Context(), bound, []byte(plain))
	check.Must(t, err)
	return sealed
}

func wantOpens(t *testing.T, key *kms.Key, sealed []byte, want string) {
	t.Helper()
	if plain, err := key.Open(t.Context(), bound, sealed); err != nil || string(plain) != want {
		t.Errorf("Open: got %q, %v; want %q", plain, err, want)
	}
}

func TestSecondProcessUsesTheSameKey(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	first := open(t, s.config(tb))
	second := open(t, s.config(tb))
	wantOpens(t, second, seal(t, first, "open-sesame"), "open-sesame")
	if !bytes.Equal(first.MAC("api key", []byte("sk-1")), second.MAC("api key", []byte("sk-1"))) {
		t.Error("the second process makes other fingerprints")
	}
	if made, opened := s.count("GenerateDataKey"), s.count("Decrypt"); made != 1 || opened != 1 {
		t.Errorf("%d keys were made and %d opened; want one each", made, opened)
	}
}

func TestTheKeyIsKeptWrappedOnly(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	open(t, s.config(tb))
	item, err := tb.Get(t.Context(), keys.DataKey(1))
	check.Must(t, err)
	made, ok := s.wrapped[string(item.Body)]
	if !ok || item.Text("kms_key") != keyARN || len(item.Attrs) != 1 || bytes.Contains(item.Body, made.plain) {
		t.Errorf("stored %+v", item)
	}
}

func TestProcessesThatStartTogetherAgree(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	s.hold = make(chan struct{}) // no process has a key before all processes have found none
	macs := make([][]byte, 8)
	var processes sync.WaitGroup
	for i := range macs {
		processes.Go(func() {
			key, err := kms.Open(t.Context(), s.config(tb))
			if err != nil {
				t.Error(err)
				return
			}
			macs[i] = key.MAC("", nil)
		})
	}
	close(s.hold)
	processes.Wait()
	for _, mac := range macs {
		if !bytes.Equal(mac, macs[0]) {
			t.Fatal("two processes have different keys")
		}
	}
}

// lateTable shows no data keys until a data key is about to be written, as for a process that
// loses the race.
type lateTable struct {
	table.Table
	rival func()
	once  sync.Once
}

func (l *lateTable) Transact(ctx context.Context, writes ...table.Write) error {
	l.once.Do(l.rival)
	return l.Table.Transact(ctx, writes...)
}

func TestTheLoserOfTheRaceReadsTheWinnersKey(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	var winner *kms.Key
	cfg := s.config(&lateTable{Table: tb, rival: func() { winner = open(t, s.config(tb)) }})
	loser := open(t, cfg)
	wantOpens(t, winner, seal(t, loser, "open-sesame"), "open-sesame")
	if made := s.count("GenerateDataKey"); made != 2 {
		t.Errorf("%d keys were made: there was no race", made)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	before := open(t, s.config(tb))
	old, mac := seal(t, before, "older"), before.MAC("api key", []byte("sk-1"))
	check.Must(t, kms.Rotate(t.Context(), s.config(tb)))
	after := open(t, s.config(tb))
	wantOpens(t, after, old, "older")
	if !bytes.Equal(mac, after.MAC("api key", []byte("sk-1"))) {
		t.Error("rotation locks every API key out")
	}
	newer := seal(t, after, "newer")
	if bytes.Equal(old[:5], newer[:5]) {
		t.Error("the new key does not seal")
	}
	// A process that started before the rotation learns of the key when it meets a text that
	// the key sealed, and only once.
	opened := s.count("Decrypt")
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() { wantOpens(t, before, newer, "newer") })
	}
	readers.Wait()
	wantOpens(t, before, old, "older")
	if asked := s.count("Decrypt") - opened; asked != 2 {
		t.Errorf("the keys were unwrapped %d times, want each of the two once", asked)
	}
}

func TestUnknownKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key, stranger := open(t, s.config(fixtures.Table(t))), open(t, s.config(fixtures.Table(t)))
	sealed := seal(t, stranger, "open-sesame")
	if plain, err := key.Open(t.Context(), bound, sealed); err == nil || !strings.Contains(err.Error(), "sealed with another key") {
		t.Errorf("got %q, %v", plain, err)
	}
	s.refuse(refusal{400, "AccessDeniedException", "no more"})
	if _, err := key.Open(t.Context(), bound, sealed); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("got %v, want why the keys could not be read anew", err)
	}
	wantOpens(t, key, seal(t, key, "open-sesame"), "open-sesame")
}

func TestWrappedKeyOpensNowhereElse(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	open(t, s.config(tb))
	for name, change := range map[string]func(*kms.Config){
		"another context": func(c *kms.Config) { c.Context = map[string]string{"slipway": "staging"} },
		"no context":      func(c *kms.Config) { c.Context = nil },
	} {
		cfg := s.config(tb)
		change(&cfg)
		_, err := kms.Open(t.Context(), cfg)
		if _, ok := errors.AsType[*types.InvalidCiphertextException](err); !ok || !strings.Contains(err.Error(), "another installation") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	cfg := s.config(tb)
	cfg.KeyID = "alias/other"
	if _, err := kms.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "IncorrectKeyException") {
		t.Errorf("another KMS key: got %v", err)
	}
	cfg = s.config(fixtures.Table(t))
	cfg.Context = nil
	if _, err := kms.Open(t.Context(), cfg); err == nil || s.count("GenerateDataKey") != 1 {
		t.Errorf("no context: a key was made (%v)", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []refusal{
		{400, "AccessDeniedException", "not authorized to perform: kms:GenerateDataKey"},
		{400, "DisabledException", "the key is disabled"},
		{400, "NotFoundException", "no such key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, tb := newServer(t), fixtures.Table(t)
			for _, when := range []string{"first start", "later start"} {
				s.refuse(c)
				_, err := kms.Open(t.Context(), s.config(tb))
				api, ok := errors.AsType[smithy.APIError](err)
				if !ok || api.ErrorCode() != c.name || !strings.Contains(err.Error(), c.message) {
					t.Errorf("%s: got %v", when, err)
				}
				open(t, s.config(tb))
			}
		})
	}
}

func TestThrottlingIsWaitedOut(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	slow := refusal{400, "ThrottlingException", "rate exceeded"}
	s.refuse(slow, slow)
	open(t, s.config(fixtures.Table(t)))
}

func TestLazy(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	lazy := kms.NewLazy(s.config(fixtures.Table(t)))
	if s.count("GenerateDataKey") != 0 {
		t.Error("KMS was asked before anybody needed it")
	}
	s.refuse(refusal{400, "AccessDeniedException", "not yet"})
	if _, err := lazy.Key(t.Context()); err == nil {
		t.Fatal("got no error")
	}
	var got sync.Map
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			key, err := lazy.Key(t.Context())
			if err != nil {
				t.Error(err)
			}
			got.Store(key, true)
		})
	}
	callers.Wait()
	different := 0
	got.Range(func(any, any) bool { different++; return true })
	if made := s.count("GenerateDataKey"); different != 1 || made != 2 {
		t.Errorf("got %d keys after %d requests", different, made)
	}
}

func TestLazyCallersWaitNoLongerThanTheyWant(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.hold = make(chan struct{})
	lazy := kms.NewLazy(s.config(fixtures.Table(t)))
	first := make(chan error, 1)
	go func() {
		_, err := lazy.Key(t.Context())
		first <- err
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lazy.Key(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	close(s.hold)
	check.Must(t, <-first)
}

// TestRefresh looks for a key that was added after the start, and checks how seldom Refresh
// looks.
func TestRefresh(t *testing.T) {
	t.Parallel()
	s, tb := newServer(t), fixtures.Table(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cfg := s.config(tb)
	cfg.Now = func() time.Time { return now }
	key := open(t, cfg)
	before := key.MAC("api key", []byte("sk-1"))
	refresh := func(after time.Duration, want bool) {
		t.Helper()
		now = now.Add(after)
		if found, err := key.Refresh(t.Context()); err != nil || found != want {
			t.Errorf("got %v (%v), want %v", found, err, want)
		}
	}
	refresh(0, false)
	check.Must(t, kms.Rotate(t.Context(), cfg))
	refresh(10*time.Second-1, false)
	opened := s.count("Decrypt")
	refresh(1, true)
	refresh(time.Minute, false)
	if asked := s.count("Decrypt") - opened; asked != 2 {
		t.Errorf("%d keys were unwrapped, want each of the two once", asked)
	}
	macs := key.MACs("api key", []byte("sk-1"))
	if len(macs) != 2 || !bytes.Equal(macs[1], before) || !bytes.Equal(key.MAC("api key", []byte("sk-1")), before) {
		t.Errorf("got %x, want the newer one before %x", macs, before)
	}
}
