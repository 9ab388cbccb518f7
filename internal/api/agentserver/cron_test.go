package agentserver_test

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestACronFiresOnceForEachDueTime lets two timers look at a cron that is due, also long after
// the due time: the cron fires once, and moves to its next time.
func TestACronFiresOnceForEachDueTime(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	made := f.call(t, "POST", thread+"/runs/crons", with(yearly(), "schedule", "0 8 * * *"))
	wantStatus(t, made, http.StatusOK)
	due, err := clock.Parse(made.string("next_run_date"))
	check.Must(t, err)
	check.Must(t, f.crons.Fire(t.Context(), clock.System()))
	wantBody(t, f.call(t, "GET", thread+"/runs", nil), []any{}) // the cron is not due yet
	late := due.Add(72*time.Hour + time.Second)
	f.crons.Now = func() time.Time { return late } // three of its times have gone by
	var timers sync.WaitGroup
	for range 4 {
		timers.Go(func() {
			if err := f.crons.Fire(t.Context(), late); err != nil {
				t.Error(err)
			}
		})
	}
	timers.Wait()
	runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any)
	if len(runs) != 1 {
		t.Fatalf("it fired %d times, want once", len(runs))
	}
	metadata, _ := runs[0].(map[string]any)["metadata"].(map[string]any)
	if metadata["cron_id"] != made.string("cron_id") || metadata["cron_due"] != made.string("next_run_date") {
		t.Errorf("the run's metadata is %v", metadata)
	}
	shown := f.call(t, "GET", "/runs/crons/"+made.string("cron_id"), nil)
	if want := clock.Format(due.Add(4 * 24 * time.Hour)); shown.string("next_run_date") != want {
		t.Errorf("it fires next at %s, want %s", shown.string("next_run_date"), want)
	}
}

// lagging is a table whose index shows older items, as DynamoDB's may.
type lagging struct {
	table.Table
	before map[string]table.Page
}

func (l lagging) Query(_ context.Context, query table.Query) (table.Page, error) {
	return l.before[query.PK], nil
}

// meeting is a table that lets something happen after its first transaction.
type meeting struct {
	table.Table
	once *sync.Once
	then func()
}

func (m meeting) Transact(ctx context.Context, writes ...table.Write) error {
	err := m.Table.Transact(ctx, writes...)
	m.once.Do(m.then)
	return err
}

// TestATimerThatSeesAnOldIndexDoesNotFireAgain lets the timer look while another timer has
// moved the cron to its next time and has not created the run yet.
func TestATimerThatSeesAnOldIndexDoesNotFireAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	made := f.call(t, "POST", thread+"/runs/crons", with(yearly(), "schedule", "0 8 * * *"))
	wantStatus(t, made, http.StatusOK)
	due, err := clock.Parse(made.string("next_run_date"))
	check.Must(t, err)
	late := due.Add(time.Second)
	config := f.crons.Config
	config.Now = func() time.Time { return late }
	behind, ahead := config, config
	old := lagging{Table: config.Table, before: map[string]table.Page{}}
	for _, query := range keys.DueCrons.Until(late) {
		old.before[query.PK], err = config.Table.Query(t.Context(), query)
		check.Must(t, err)
	}
	behind.Table = old
	ahead.Table = meeting{Table: config.Table, once: new(sync.Once), then: func() { check.Must(t, cron.NewStore(behind).Fire(t.Context(), late)) }}
	check.Must(t, cron.NewStore(ahead).Fire(t.Context(), late))
	if runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any); len(runs) != 1 {
		t.Fatalf("it fired %d times, want once", len(runs))
	}
}

// TestACronOfADeletedDeploymentWaits has a cron that is due in the recovery window of its
// deployment, when no server serves the deployment, and again when the deployment is undeleted
// but not deployed yet.
func TestACronOfADeletedDeploymentWaits(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	made := f.call(t, "POST", thread+"/runs/crons", with(yearly(), "schedule", "0 8 * * *"))
	wantStatus(t, made, http.StatusOK)
	due, err := clock.Parse(made.string("next_run_date"))
	check.Must(t, err)
	check.Must(t, f.deployments.Delete(t.Context(), f.deployment, deployment.Deletion{Window: time.Hour}))
	wantStatus(t, f.call(t, "GET", thread, nil), http.StatusNotFound)
	late := due.Add(time.Second)
	f.crons.Now = func() time.Time { return late }
	check.Must(t, f.crons.Fire(t.Context(), late))
	_, err = f.deployments.Undelete(t.Context(), f.deployment, nil)
	check.Must(t, err)
	runs := func() int {
		t.Helper()
		found, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any)
		return len(found)
	}
	if n := runs(); n != 0 {
		t.Errorf("it fired %d times in the window", n)
	}
	late = late.Add(24 * time.Hour)
	if err := f.crons.Fire(t.Context(), late); err == nil {
		t.Error("nobody is told that a run waits for its deployment")
	}
	if n := runs(); n != 0 {
		t.Errorf("it fired %d times before anything was deployed", n)
	}
	f.deploy(t, "agent")
	late = late.Add(2 * time.Minute)
	check.Must(t, f.crons.Fire(t.Context(), late))
	if n := runs(); n != 1 {
		t.Errorf("it fired %d times when it was deployed", n)
	}
}

func TestACronThatIsNotEnabledDoesNotFire(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	made := f.call(t, "POST", "/runs/crons", with(yearly(), "enabled", false))
	wantStatus(t, made, http.StatusOK)
	if made.member("next_run_date") != nil {
		t.Errorf("it fires at %v", made.member("next_run_date"))
	}
	for _, c := range []object{
		with(yearly(), "schedule", "sometimes"), with(yearly(), "timezone", "Mars/Base"), with(yearly(), "schedule", "@every 1s"),
		with(yearly(), "schedule", "CRON_TZ=UTC 0 8 * * *"), with(yearly(), "end_time", "tomorrow"),
	} {
		wantStatus(t, f.call(t, "POST", "/runs/crons", c), http.StatusUnprocessableEntity)
	}
	wantStatus(t, f.call(t, "POST", "/runs/crons", with(yearly(), "assistant_id", "nobody")), http.StatusNotFound)
}

// TestRunsTakeTheConfigurationOfTheirAssistant lays a run's configuration over the
// assistant's.
func TestRunsTakeTheConfigurationOfTheirAssistant(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	made := f.call(t, "POST", "/assistants", object{
		"graph_id": "agent", "config": object{"tags": []string{"a"}, "recursion_limit": 5, "configurable": object{"x": 1, "y": 1}},
		"context": object{"c": 1, "d": 1}, "metadata": object{"of": "assistant", "m": 1},
	})
	wantStatus(t, made, http.StatusOK)
	body := with(with(with(hi(), "assistant_id", made.string("assistant_id")), "metadata", object{"of": "run"}), "context", object{"d": 2})
	run := f.call(t, "GET", f.finish(t, f.newThread(t), with(body, "config", object{"tags": []string{"b"}, "configurable": object{"y": 2}})), nil)
	config, _ := run.member("kwargs", "config").(map[string]any)
	configurable, _ := config["configurable"].(map[string]any)
	if config["recursion_limit"] != 5.0 || len(config["tags"].([]any)) != 2 || configurable["x"] != 1.0 || configurable["y"] != 2.0 {
		t.Errorf("config is %v", config)
	}
	if run.member("kwargs", "context", "c") != 1.0 || run.member("kwargs", "context", "d") != 2.0 {
		t.Errorf("context is %v", run.member("kwargs", "context"))
	}
	if run.string("metadata", "of") != "run" || run.member("metadata", "m") != 1.0 || run.string("assistant_id") != made.string("assistant_id") {
		t.Errorf("metadata is %v", run.member("metadata"))
	}
}

// TestARunsValuesHideThoseOfItsAssistant checks that a value of the run also replaces the
// assistant's if one client gives it as configurable and the other as context. The graph may read
// it from either.
func TestARunsValuesHideThoseOfItsAssistant(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for name, test := range map[string]struct{ assistant, run, config, context object }{
		"context, then configurable": {
			object{"context": object{"style": "long", "d": 1}}, object{"config": object{"configurable": object{"style": "short", "e": 1}}},
			object{"configurable": object{"style": "short", "e": 1.0}}, object{"style": "short", "d": 1.0},
		},
		"configurable, then context": {
			object{"config": object{"tags": []any{"b", "a"}, "configurable": object{"style": "long", "d": 1}}}, object{"context": object{"style": "short", "e": 1}},
			object{"tags": []any{"a", "b"}, "configurable": object{"style": "short", "d": 1.0}}, object{"style": "short", "e": 1.0},
		},
		"context, then both": {
			object{"context": object{"style": "long"}}, object{"context": object{"style": "short"}, "config": object{"configurable": object{"style": "none"}}},
			object{"configurable": object{"style": "none"}}, object{"style": "short"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := f.call(t, "POST", "/assistants", with(test.assistant, "graph_id", "agent"))
			wantStatus(t, made, http.StatusOK)
			body := with(hi(), "assistant_id", made.string("assistant_id"))
			maps.Copy(body, test.run)
			run := f.call(t, "GET", f.finish(t, f.newThread(t), body), nil)
			if diff := cmp.Diff([]any{test.config, test.context}, []any{run.member("kwargs", "config"), run.member("kwargs", "context")}); diff != "" {
				t.Errorf("config and context (-want +got):\n%s", diff)
			}
		})
	}
}

// TestADeploymentHasSoManyCrons checks the limit of crons, which lets a search read all of
// them.
func TestADeploymentHasSoManyCrons(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	made := f.call(t, "POST", "/runs/crons", yearly())
	wantStatus(t, made, http.StatusOK)
	count := keys.CronCount(f.deployment.Workspace, f.deployment.Deployment)
	check.Must(t, f.table.Transact(t.Context(), table.Update{Key: count, Add: map[string]int64{"count": quota.Limits{}.Of(quota.DeploymentCrons) - 1}}))
	for range 2 {
		wantDetail(t, f.call(t, "POST", "/runs/crons", yearly()), http.StatusForbidden,
			"The quota crons_per_deployment of this workspace is used up: its limit is 1000. Delete a cron of this deployment, or have the operator of the server raise it (--quota crons_per_deployment=N, on AWS the parameter Quotas).")
		wantStatus(t, f.call(t, "DELETE", "/runs/crons/"+made.string("cron_id"), nil), http.StatusNoContent)
		wantStatus(t, f.call(t, "DELETE", "/runs/crons/"+made.string("cron_id"), nil), http.StatusNotFound)
		made = f.call(t, "POST", "/runs/crons", yearly())
		wantStatus(t, made, http.StatusOK)
	}
}

// TestAPatchSetsMembersOfTheMetadata checks that the other members stay, as for threads and
// assistants.
func TestAPatchSetsMembersOfTheMetadata(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	made := f.call(t, "POST", "/runs/crons", with(yearly(), "metadata", object{"a": 1, "b": object{"x": 1}}))
	cron := "/runs/crons/" + made.string("cron_id")
	for _, test := range []struct{ metadata, want object }{
		{object{"c": 2}, object{"a": 1.0, "b": object{"x": 1.0}, "c": 2.0}},
		{object{"a": nil, "b": object{"y": 1}}, object{"a": nil, "b": object{"y": 1.0}, "c": 2.0}},
		{nil, object{"a": nil, "b": object{"y": 1.0}, "c": 2.0}},
	} {
		for _, shown := range []response{f.call(t, "PATCH", cron, object{"metadata": test.metadata}), f.call(t, "GET", cron, nil)} {
			if diff := cmp.Diff(any(test.want), shown.member("metadata")); diff != "" {
				t.Errorf("after %v, the metadata is (-want +got):\n%s", test.metadata, diff)
			}
		}
	}
}
