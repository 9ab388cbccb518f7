package agentserver_test

import (
	"errors"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// wantEnabled checks whether a cron is enabled, and when it fires next; nil is never.
func (c timed) wantEnabled(t *testing.T, when, cron string, enabled bool, next any) {
	t.Helper()
	shown := c.call(t, "GET", cron, nil)
	wantStatus(t, shown, http.StatusOK)
	if diff := cmp.Diff([]any{enabled, next}, []any{shown.member("enabled"), shown.member("next_run_date")}); diff != "" {
		t.Errorf("%s: enabled, and fires next (-want +got):\n%s", when, diff)
	}
}

// dailyOn creates a cron on a thread.
func (c timed) dailyOn(t *testing.T, thread string, more object) (cron string) {
	t.Helper()
	body := with(yearly(), "schedule", "0 8 * * *")
	maps.Copy(body, more)
	made := c.call(t, "POST", thread+"/runs/crons", body)
	wantStatus(t, made, http.StatusOK)
	return "/runs/crons/" + made.string("cron_id")
}

// TestACronOfADeletedThreadOrAssistantIsDisabled deletes the objects of crons. A cron whose thread
// is only busy stays enabled.
func TestACronOfADeletedThreadOrAssistantIsDisabled(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	const tomorrow = "2030-01-02T08:00:00.000000Z"
	deleted, kept, busy := c.newThread(t), c.newThread(t), c.newThread(t)
	assistant := c.call(t, "POST", "/assistants", object{"graph_id": "agent"}).string("assistant_id")
	ofThread, onKept, onBusy := c.dailyOn(t, deleted, nil), c.dailyOn(t, kept, nil), c.dailyOn(t, busy, object{"multitask_strategy": "reject"})
	ofAssistant, _ := c.daily(t, object{"assistant_id": assistant})
	late := c.dailyOn(t, kept, object{"schedule": "0 9 * * *"})
	wantStatus(t, c.call(t, "DELETE", deleted, nil), http.StatusNoContent)
	wantStatus(t, c.call(t, "DELETE", "/assistants/"+assistant, nil), http.StatusNoContent)
	wantStatus(t, c.call(t, "POST", busy+"/runs", with(hi(), "after_seconds", 3600)), http.StatusOK)
	c.wantEnabled(t, "before it is due", ofThread, true, "2030-01-01T08:00:00.000000Z")
	c.tick(t, "2030-01-01T08:00:00Z")
	c.wantEnabled(t, "of a deleted thread", ofThread, false, nil)
	c.wantEnabled(t, "of a deleted assistant", ofAssistant, false, nil)
	c.wantEnabled(t, "of a thread that is there", onKept, true, tomorrow)
	c.wantEnabled(t, "of a busy thread", onBusy, true, tomorrow)
	// A timer dies before it creates the run. The thread is deleted before the next timer looks.
	c.crons.Room = func() error { return errors.New("the timer is dead") }
	c.set(t, "2030-01-01T09:00:00Z")
	if err := c.crons.Fire(t.Context(), *c.at.Load()); err == nil {
		t.Fatal("the timer did not fail")
	}
	c.crons.Room = nil
	wantStatus(t, c.call(t, "DELETE", kept, nil), http.StatusNoContent)
	c.tick(t, "2030-01-01T09:02:00Z")
	c.wantEnabled(t, "of a thread that is deleted before a second try", late, false, nil)
}

// TestADisabledCronIsNotTriedAgain disables a cron after its timer could not create the run.
func TestADisabledCronIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cron, _ := c.daily(t, object{"on_run_completed": "keep"})
	c.crons.Room = func() error { return errors.New("the timer is dead") }
	c.set(t, "2030-01-01T08:00:00Z")
	if err := c.crons.Fire(t.Context(), *c.at.Load()); err == nil {
		t.Fatal("the timer did not fail")
	}
	c.crons.Room = nil
	c.patch(t, cron, object{"enabled": false}, nil)
	c.tick(t, "2030-01-01T08:02:00Z")
	c.wantRuns(t, "when it is disabled", cron)
	c.patch(t, cron, object{"enabled": true}, "2030-01-02T08:00:00.000000Z")
	c.tick(t, "2030-01-02T08:00:00Z")
	c.wantRuns(t, "when it is enabled again", cron, "2030-01-02T08:00")
}

// TestACronWithoutItsAssistantMakesNoThread checks that a cron that can never fire leaves nothing
// behind.
func TestACronWithoutItsAssistantMakesNoThread(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	assistant := c.call(t, "POST", "/assistants", object{"graph_id": "agent"}).string("assistant_id")
	cron, _ := c.daily(t, object{"assistant_id": assistant})
	wantStatus(t, c.call(t, "DELETE", "/assistants/"+assistant, nil), http.StatusNoContent)
	c.tick(t, "2030-01-01T08:00:00Z")
	c.wantEnabled(t, "without its assistant", cron, false, nil)
	c.wantRuns(t, "without its assistant", cron)
}

// TestAChangeKeepsADueTime changes a cron after its due time, before a timer looks at it.
func TestAChangeKeepsADueTime(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cron, _ := c.daily(t, nil)
	c.set(t, "2030-01-01T08:00:20Z")
	c.patch(t, cron, object{"metadata": object{"seen": true}}, "2030-01-01T08:00:00.000000Z")
	c.tick(t, "2030-01-01T08:00:30Z")
	c.wantRuns(t, "after the change", cron, "2030-01-01T08:00")
	c.patch(t, cron, object{"schedule": "0 9 * * *"}, "2030-01-01T09:00:00.000000Z")
}

// TestARefusedRunOfACronLeavesNoThread has the run of a cron refused by a quota. The run that is
// tried again has its thread.
func TestARefusedRunOfACronLeavesNoThread(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Runs, 1))
	c := timed{fixture: f, at: new(atomic.Pointer[time.Time])}
	c.set(t, "2030-01-01T07:00:00Z")
	c.crons.Now = func() time.Time { return *c.at.Load() }
	busy := c.newThread(t)
	wantStatus(t, c.call(t, "POST", busy+"/runs", with(hi(), "after_seconds", 3600)), http.StatusOK)
	waits, _ := c.daily(t, object{"on_run_completed": "keep"})
	c.set(t, "2030-01-01T08:00:00Z")
	if err := c.crons.Fire(t.Context(), *c.at.Load()); err == nil {
		t.Error("the quota refuses no run")
	}
	if threads := c.threadsOf(t, waits); len(threads) != 0 {
		t.Errorf("the cron has left %v", threads)
	}
	wantStatus(t, c.call(t, "DELETE", busy, nil), http.StatusNoContent)
	c.tick(t, "2030-01-01T08:02:00Z")
	c.wantRuns(t, "of a run that is tried again", waits, "2030-01-01T08:00")
}
