package cipher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// memory is a table in the memory of a test's bubble. It queries by partition only.
type memory struct {
	table.Table

	mu    sync.Mutex
	items []*table.Item
}

func (m *memory) Get(_ context.Context, key table.Key) (*table.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, item := range m.items {
		if item.Key == key {
			return item, nil
		}
	}
	return nil, table.ErrNotFound
}

func (m *memory) GetBatch(ctx context.Context, keys ...table.Key) (found []*table.Item, err error) {
	for _, key := range keys {
		item, err := m.Get(ctx, key)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return nil, err
		}
		found = append(found, item)
	}
	return found, nil
}

// Query answers as the index of due items does: with references.
func (m *memory) Query(_ context.Context, query table.Query) (page table.Page, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, item := range m.items {
		switch at := item.Index[table.ByDue]; {
		case query.Index == table.ByDue && at.PK == query.PK:
			page.Items = append(page.Items, &table.Item{Key: item.Key, Index: item.Index})
		case query.Index == "" && item.Key.PK == query.PK:
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}

func (m *memory) Transact(_ context.Context, writes ...table.Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, write := range writes {
		put := write.(table.Put).Item
		m.items = append(m.items, &put)
	}
	return nil
}

// behaviour is how the handlers of a deployment answer, by the deployment's id.
type behaviour func(ctx context.Context, of keys.DeploymentParts) error

// shard has crons of several deployments, all of which are due.
type shard struct {
	*cipher.Table

	h       handlers
	behaves behaviour
	asked   map[keys.DeploymentParts]int
}

var dueShard = table.Query{Index: table.ByDue, PK: "due"}

// newShard stores crons of deployments, in their order. The deployments of the workspace "plain" do
// not encrypt.
func newShard(t *testing.T, crons int, deployments ...keys.DeploymentParts) *shard {
	t.Helper()
	s := &shard{asked: map[keys.DeploymentParts]int{}}
	below := &memory{}
	for _, of := range deployments {
		if of.Workspace != "plain" {
			check.Must(t, below.Transact(t.Context(), cipher.Mark(of.Workspace, of.Deployment, time.Now())))
		}
	}
	var err error
	s.Table, err = cipher.Open(t.Context(), below, clock.System, s.ask)
	check.Must(t, err)
	for _, of := range deployments {
		for i := range crons {
			write := put(keys.Cron(of.Workspace, of.Deployment, fmt.Sprint(i)), `{"metadata":{},"request":{}}`, nil)
			write.Item.Index = map[table.Index]table.Key{table.ByDue: {PK: dueShard.PK, SK: fmt.Sprint(i)}}
			check.Must(t, s.Transact(t.Context(), write))
		}
	}
	s.asked = map[keys.DeploymentParts]int{}
	return s
}

func (s *shard) ask(ctx context.Context, workspace, deployment string, operation graph.Operation, asked graph.Encryption) (graph.Ciphered, error) {
	of := keys.DeploymentParts{Workspace: workspace, Deployment: deployment}
	s.asked[of]++
	if s.behaves != nil {
		if err := s.behaves(ctx, of); err != nil {
			return graph.Ciphered{}, err
		}
	}
	return s.h.ask(ctx, workspace, deployment, operation, asked)
}

// pass reads each due cron, as a timer does. It returns how many crons of each workspace it could
// read, after which time those of the workspace "plain" were reached, and the pass's error.
func (s *shard) pass(t *testing.T) (read map[string]int, plain time.Duration, err error) {
	t.Helper()
	begun := time.Now()
	read = map[string]int{}
	err = table.Pass{Shards: []table.Query{dueShard}, Page: 1000}.Serve(t.Context(), s.Table, func(ctx context.Context, item *table.Item) error {
		of, _, _ := keys.ParsePart(item.Key)
		if _, err := s.Get(ctx, item.Key); err != nil {
			return err
		}
		if read[of.Workspace]++; of.Workspace == "plain" && plain == 0 {
			plain = time.Since(begun)
		}
		return nil
	})
	return read, plain, err
}

var (
	hung  = keys.DeploymentParts{Workspace: "hung", Deployment: "d"}
	plain = keys.DeploymentParts{Workspace: "plain", Deployment: "d"}
)

// hang answers when the caller goes, as an agent does whose handler hangs.
func hang(ctx context.Context, _ keys.DeploymentParts) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestAttackHandlersThatHang checks that timers wait for one question in 30 s, whoever else is in
// the shard, and go on as soon as the handlers answer.
func TestAttackHandlersThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, 20, hung, plain)
		s.behaves = hang
		read, waited, err := s.pass(t)
		if read["plain"] != 20 || read["hung"] != 0 || waited > 2*time.Second || s.asked[hung] != 1 {
			t.Errorf("read %v after %s and %d questions", read, waited, s.asked[hung])
		}
		if !cipher.IsUnavailable(err) || !strings.Contains(err.Error(), "own encryption did not answer within 2s") || !strings.Contains(err.Error(), "did not answer a moment ago") {
			t.Errorf("got %v", err)
		}
		<-time.After(29 * time.Second)
		if read, waited, _ := s.pass(t); read["plain"] != 20 || waited > 0 || s.asked[hung] != 1 {
			t.Errorf("within 30 s: read %v after %s and %d questions", read, waited, s.asked[hung])
		}
		<-time.After(2 * time.Second)
		if read, waited, _ := s.pass(t); read["plain"] != 20 || waited > 2*time.Second || s.asked[hung] != 2 {
			t.Errorf("after 30 s: read %v after %s and %d questions", read, waited, s.asked[hung])
		}
		s.behaves = nil
		if read, _, _ := s.pass(t); read["hung"] != 0 {
			t.Errorf("timers ask at once: %v", read)
		}
		if _, err := s.Get(t.Context(), keys.Cron(hung.Workspace, hung.Deployment, "0")); err != nil {
			t.Errorf("a request is refused meanwhile: %v", err)
		}
		if read, _, err := s.pass(t); read["hung"] != 20 || err != nil {
			t.Errorf("after an answer: read %v, %v", read, err)
		}
	})
}

// TestAttackATimerThatEndsFirst: a timer whose own time ends before the handlers' counts, too, and
// a timer that is stopped does not.
func TestAttackATimerThatEndsFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		bound     func(context.Context) (context.Context, context.CancelFunc)
		questions int
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, 1},
		{"stop", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShard(t, 3, hung)
				s.behaves = hang
				_ = table.Pass{Shards: []table.Query{dueShard}, Page: 10}.Serve(t.Context(), s.Table, func(ctx context.Context, item *table.Item) error {
					ctx, cancel := c.bound(ctx)
					defer cancel()
					_, err := s.Get(ctx, item.Key)
					return err
				})
				if s.asked[hung] != c.questions {
					t.Errorf("%d questions, want %d", s.asked[hung], c.questions)
				}
			})
		})
	}
}

// TestAttackTheTimeOfTimers has handlers that answer just in time, handlers of many deployments
// that hang, and agents that do not start: their workspace gets a share of a timer's time.
func TestAttackTheTimeOfTimers(t *testing.T) {
	t.Parallel()
	var many []keys.DeploymentParts
	for i := range 30 {
		many = append(many, keys.DeploymentParts{Workspace: "hung", Deployment: fmt.Sprint(i)})
	}
	for name, c := range map[string]struct {
		deployments []keys.DeploymentParts
		behaves     behaviour
	}{
		"just in time": {[]keys.DeploymentParts{hung}, func(context.Context, keys.DeploymentParts) error {
			<-time.After(1900 * time.Millisecond)
			return nil
		}},
		"many deployments": {many, hang},
		"an agent that never starts": {many, func(context.Context, keys.DeploymentParts) error {
			<-time.After(time.Second)
			return fault.New(fault.Unavailable, "The agent does not answer at the moment.")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShard(t, 20, append(c.deployments, plain)...)
				s.behaves = c.behaves
				begun := time.Now()
				for round := range 3 {
					read, waited, _ := s.pass(t)
					if read["plain"] != 20 || waited > 7*time.Second {
						t.Errorf("pass %d: read %v after %s", round, read, waited)
					}
				}
				if took := time.Since(begun); took > 7*time.Second {
					t.Errorf("three passes took %s", took)
				}
			})
		})
	}
}

// TestAttackHandlersThatHangForTimersOnly answers a request after each pass, which ends the pause.
func TestAttackHandlersThatHangForTimersOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, 1, hung)
		s.behaves = func(ctx context.Context, of keys.DeploymentParts) error {
			if table.IsOfTimer(ctx) {
				return hang(ctx, of)
			}
			return nil
		}
		begun := time.Now()
		for range 10 {
			_, _, _ = s.pass(t)
			_, err := s.Get(t.Context(), keys.Cron("hung", "d", "0"))
			check.Must(t, err)
		}
		if took := time.Since(begun); took > 7*time.Second {
			t.Errorf("ten passes took %s", took)
		}
	})
}

// TestAnAgentThatIsStarting keeps timers from asking again for a short time only.
func TestAnAgentThatIsStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, 3, hung)
		s.behaves = func(context.Context, keys.DeploymentParts) error {
			<-time.After(time.Second)
			return fault.New(fault.Unavailable, "The agent does not answer at the moment.")
		}
		if _, _, err := s.pass(t); s.asked[hung] != 1 || !strings.Contains(err.Error(), "The agent does not answer at the moment.") {
			t.Errorf("%d questions: %v", s.asked[hung], err)
		}
		<-time.After(3 * time.Second)
		s.behaves = nil
		if read, _, err := s.pass(t); read["hung"] != 3 || err != nil {
			t.Errorf("read %v, %v", read, err)
		}
	})
}

// TestDueItemsAreFoundWithoutTheHandlers: the references of all deployments' due items are read,
// and no deployment is asked.
func TestDueItemsAreFoundWithoutTheHandlers(t *testing.T) {
	t.Parallel()
	encrypted, _ := open(t, &handlers{})
	of := []table.Key{keys.Cron(workspace, deployment, "a"), keys.Cron("w2", "d2", "b"), keys.Cron(workspace, deployment, "c")}
	for _, key := range of {
		write := put(key, `{"metadata":{},"request":{}}`, nil)
		write.Item.Index = map[table.Index]table.Key{table.ByDue: {PK: "due", SK: key.SK}}
		check.Must(t, encrypted.Transact(t.Context(), write))
	}
	h := handlers{err: errors.New("asked")}
	again, err := cipher.Open(t.Context(), encrypted.Table, clock.System, h.ask)
	check.Must(t, err)
	for _, limit := range []int{0, 1} {
		var found []table.Key
		for items, err := range table.Pages(t.Context(), again, table.Query{Index: table.ByDue, PK: "due", Limit: limit}) {
			check.Must(t, err)
			for _, item := range items {
				found = append(found, item.Key)
			}
		}
		if len(found) != len(of) || len(h.questions) > 0 {
			t.Errorf("found %v after %d questions", found, len(h.questions))
		}
	}
}
