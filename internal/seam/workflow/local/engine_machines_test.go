package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// drive takes one way through a real machine.
type drive struct {
	machine workflow.Machine
	// answers are the answers of the functions at each call of a step, with the next state;
	// the last one is repeated. "!" is a failure, "!Name" a failure with a name, "..." no
	// answer at all. A step without answers answers "Done".
	answers map[string]string
	// path lists the states in the order in which they are entered.
	path   string
	calls  int
	status workflow.Status
	err    string
}

var drives = map[string]drive{
	"run: done":                    {workflow.Run, nil, "Work", 1, workflow.Succeeded, ""},
	"run: three slices":            {workflow.Run, answers{"Work": "!NextSlice !NextSlice Done"}, "Work Work Work", 3, workflow.Succeeded, ""},
	"run: delayed":                 {workflow.Run, answers{"Work": "!NotDue !NotDue Done"}, "Work Due Wait Work Due Wait Work", 5, workflow.Succeeded, ""},
	"run: agent comes back":        {workflow.Run, answers{"Work": "!AgentUnavailable !AgentUnavailable Done"}, "Work", 3, workflow.Succeeded, ""},
	"run: agent stays away":        {workflow.Run, answers{"Work": "!AgentUnavailable"}, "Work GiveUp", 4, workflow.Succeeded, ""},
	"run: agent is being replaced": {workflow.Run, answers{"Work": "!AgentAbsent !AgentAbsent !AgentAbsent !AgentUnavailable !AgentAbsent !AgentUnavailable Done"}, "Work", 7, workflow.Succeeded, ""},
	"run: no agent for hours":      {workflow.Run, answers{"Work": "!AgentAbsent"}, "Work GiveUp", 452, workflow.Succeeded, ""},
	"run: worker fails":            {workflow.Run, answers{"Work": "!"}, "Work GiveUp", 4, workflow.Succeeded, ""},
	"run: both kinds of failure":   {workflow.Run, answers{"Work": "!AgentUnavailable ! !AgentUnavailable ! !"}, "Work GiveUp", 6, workflow.Succeeded, ""},
	"run: failures then a slice":   {workflow.Run, answers{"Work": "! ! !NextSlice ! ! Done"}, "Work Work", 6, workflow.Succeeded, ""},
	"run: no function is free":     {workflow.Run, answers{"Work": "!Lambda.TooManyRequestsException !Lambda.TooManyRequestsException !Lambda.ServiceException !Lambda.TooManyRequestsException ! Done"}, "Work", 6, workflow.Succeeded, ""},
	"run: no function for hours":   {workflow.Run, answers{"Work": "!Lambda.TooManyRequestsException"}, "Work GiveUp", 2002, workflow.Succeeded, ""},
	"run: Lambda is broken":        {workflow.Run, answers{"Work": "!Lambda.ServiceException"}, "Work GiveUp", 14, workflow.Succeeded, ""},
	"run: its time is unknown":     {workflow.Run, answers{"Work": "!NotDue", "Due": "!"}, "Work Due GiveUp", 8, workflow.Succeeded, ""},
	"run: giving up fails":         {workflow.Run, answers{"Work": "!", "GiveUp": "!"}, "Work GiveUp", 9, workflow.Failed, "States.TaskFailed"},

	"webhook: at the first attempt": {workflow.Webhook, nil, "Attempt Attempted Done", 1, workflow.Succeeded, ""},
	"webhook: at the third attempt": {workflow.Webhook, answers{"Attempt": "Wait Wait Done"}, "Attempt Attempted Wait Attempt Attempted Wait Attempt Attempted Done", 3, workflow.Succeeded, ""},
	"webhook: the platform fails":   {workflow.Webhook, answers{"Attempt": "!"}, "Attempt", 6, workflow.Failed, "States.TaskFailed"},
	"webhook: condemned":            {workflow.Webhook, answers{"Attempt": "!ServerDied"}, "Attempt Condemn Done", 7, workflow.Succeeded, ""},

	"rollout: from an image":        {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "Deploy": "AwaitHealthy", "AwaitHealthy": "Promote"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Promote Promoted Done", 5, workflow.Succeeded, ""},
	"rollout: from a repository":    {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build", "AwaitBuild": "AwaitBuild AwaitBuild Deploy", "AwaitHealthy": "AwaitHealthy Promote"}, "Prepare Prepared Provision Provisioned Build AwaitBuild BuildAwaited PauseBuild AwaitBuild BuildAwaited PauseBuild AwaitBuild BuildAwaited Deploy AwaitHealthy HealthAwaited PauseHealth AwaitHealthy HealthAwaited Promote Promoted Done", 10, workflow.Succeeded, ""},
	"rollout: over at Prepare":      {workflow.Rollout, nil, "Prepare Prepared Done", 1, workflow.Succeeded, ""},
	"rollout: over at Provision":    {workflow.Rollout, answers{"Prepare": "Provision"}, "Prepare Prepared Provision Provisioned Done", 2, workflow.Succeeded, ""},
	"rollout: over at AwaitBuild":   {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build"}, "Prepare Prepared Provision Provisioned Build AwaitBuild BuildAwaited Done", 4, workflow.Succeeded, ""},
	"rollout: over at AwaitHealthy": {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Done", 4, workflow.Succeeded, ""},
	"rollout: build fails":          {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build", "AwaitBuild": "Fail"}, "Prepare Prepared Provision Provisioned Build AwaitBuild BuildAwaited Fail Failed", 5, workflow.Failed, "RevisionFailed"},
	"rollout: never healthy":        {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Fail"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Fail Failed", 5, workflow.Failed, "RevisionFailed"},
	"rollout: Prepare breaks":       {workflow.Rollout, answers{"Prepare": "!"}, "Prepare Fail Failed", 7, workflow.Failed, "RevisionFailed"},
	"rollout: Provision breaks":     {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "!"}, "Prepare Prepared Provision Fail Failed", 8, workflow.Failed, "RevisionFailed"},
	"rollout: Build breaks":         {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build", "Build": "!"}, "Prepare Prepared Provision Provisioned Build Fail Failed", 9, workflow.Failed, "RevisionFailed"},
	"rollout: AwaitBuild breaks":    {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build", "AwaitBuild": "!"}, "Prepare Prepared Provision Provisioned Build AwaitBuild Fail Failed", 10, workflow.Failed, "RevisionFailed"},
	"rollout: Deploy breaks":        {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "Deploy": "!"}, "Prepare Prepared Provision Provisioned Deploy Fail Failed", 9, workflow.Failed, "RevisionFailed"},
	"rollout: AwaitHealthy breaks":  {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "!"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy Fail Failed", 10, workflow.Failed, "RevisionFailed"},
	"rollout: a canary":             {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Canary", "Canary": "Canary Promote"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Canary CanaryEnded PauseCanary Canary CanaryEnded Promote Promoted Done", 7, workflow.Succeeded, ""},
	"rollout: over at Canary":       {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Canary"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Canary CanaryEnded Done", 5, workflow.Succeeded, ""},
	"rollout: a canary relapses":    {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Canary", "Canary": "Canary Fail"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Canary CanaryEnded PauseCanary Canary CanaryEnded Fail Failed", 7, workflow.Failed, "RevisionFailed"},
	"rollout: Canary breaks":        {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Canary", "Canary": "!"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Canary Fail Failed", 11, workflow.Failed, "RevisionFailed"},
	"rollout: Promote breaks":       {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Promote", "Promote": "!"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Promote Fail Failed", 11, workflow.Failed, "RevisionFailed"},
	"rollout: stays healthy":        {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Promote", "Promote": "Observe", "Observe": "Observe Done"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Promote Promoted Observe Observed PauseObserving Observe Observed Done", 7, workflow.Succeeded, ""},
	"rollout: Observe breaks":       {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Deploy", "AwaitHealthy": "Promote", "Promote": "Observe", "Observe": "!"}, "Prepare Prepared Provision Provisioned Deploy AwaitHealthy HealthAwaited Promote Promoted Observe Done", 11, workflow.Succeeded, ""},
	"rollout: Fail breaks":          {workflow.Rollout, answers{"Prepare": "!", "Fail": "!"}, "Prepare Fail", 12, workflow.Failed, "States.TaskFailed"},
	"rollout: a step mends itself":  {workflow.Rollout, answers{"Prepare": "! ! ! ! ! Done"}, "Prepare Prepared Done", 6, workflow.Succeeded, ""},
	"rollout: a step hangs":         {workflow.Rollout, answers{"Prepare": "..."}, "Prepare Fail Failed", 7, workflow.Failed, "RevisionFailed"},

	"restart: at once":             {workflow.Restart, answers{"Restart": "AwaitRestart"}, "Restart Restarted AwaitRestart RestartAwaited Done", 2, workflow.Succeeded, ""},
	"restart: after a while":       {workflow.Restart, answers{"Restart": "AwaitRestart", "AwaitRestart": "AwaitRestart Restart AwaitRestart Done"}, "Restart Restarted AwaitRestart RestartAwaited PauseRestart AwaitRestart RestartAwaited Restart Restarted AwaitRestart RestartAwaited PauseRestart AwaitRestart RestartAwaited Done", 6, workflow.Succeeded, ""},
	"restart: without its secrets": {workflow.Restart, answers{"Restart": "Failed"}, "Restart Restarted Failed", 1, workflow.Failed, "RestartFailed"},
	"restart: never healthy":       {workflow.Restart, answers{"Restart": "AwaitRestart", "AwaitRestart": "Failed"}, "Restart Restarted AwaitRestart RestartAwaited Failed", 2, workflow.Failed, "RestartFailed"},
	"restart: Restart breaks":      {workflow.Restart, answers{"Restart": "!", "FailRestart": "Failed"}, "Restart FailRestart Failed", 7, workflow.Failed, "RestartFailed"},
	"restart: AwaitRestart breaks": {workflow.Restart, answers{"Restart": "AwaitRestart", "AwaitRestart": "!"}, "Restart Restarted AwaitRestart FailRestart Failed", 8, workflow.Failed, "RestartFailed"},
	"restart: a step hangs":        {workflow.Restart, answers{"Restart": "..."}, "Restart FailRestart Failed", 7, workflow.Failed, "RestartFailed"},

	"teardown: in one page each":      {workflow.Teardown, answers{"StopReleases": "EraseThreads", "EraseThreads": "EraseDeployment"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased EraseDeployment DeploymentErased Done", 3, workflow.Succeeded, ""},
	"teardown: in many pages":         {workflow.Teardown, answers{"StopReleases": "EraseThreads", "EraseThreads": "EraseThreads EraseDeployment", "EraseDeployment": "EraseDeployment Done"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased EraseThreads ThreadsErased EraseDeployment DeploymentErased EraseDeployment DeploymentErased Done", 5, workflow.Succeeded, ""},
	"teardown: after a window":        {workflow.Teardown, answers{"StopReleases": "Wait", "BeginPurge": "Wait EraseThreads", "EraseThreads": "EraseDeployment"}, "StopReleases ReleasesStopped Wait BeginPurge ReleasesStopped Wait BeginPurge ReleasesStopped EraseThreads ThreadsErased EraseDeployment DeploymentErased Done", 5, workflow.Succeeded, ""},
	"teardown: a release lingers":     {workflow.Teardown, answers{"StopReleases": "EraseThreads", "EraseThreads": "EraseDeployment EraseDeployment", "EraseDeployment": "Wait Done", "BeginPurge": "EraseThreads"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased EraseDeployment DeploymentErased Wait BeginPurge ReleasesStopped EraseThreads ThreadsErased EraseDeployment DeploymentErased Done", 6, workflow.Succeeded, ""},
	"teardown: undeleted at once":     {workflow.Teardown, nil, "StopReleases ReleasesStopped Done", 1, workflow.Succeeded, ""},
	"teardown: undeleted":             {workflow.Teardown, answers{"StopReleases": "Wait"}, "StopReleases ReleasesStopped Wait BeginPurge ReleasesStopped Done", 2, workflow.Succeeded, ""},
	"teardown: another one began":     {workflow.Teardown, answers{"StopReleases": "EraseThreads"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased Done", 2, workflow.Succeeded, ""},
	"teardown: StopReleases breaks":   {workflow.Teardown, answers{"StopReleases": "!"}, "StopReleases Failed", 6, workflow.Failed, "TeardownFailed"},
	"teardown: BeginPurge breaks":     {workflow.Teardown, answers{"StopReleases": "Wait", "BeginPurge": "!"}, "StopReleases ReleasesStopped Wait BeginPurge Failed", 7, workflow.Failed, "TeardownFailed"},
	"teardown: EraseThreads breaks":   {workflow.Teardown, answers{"StopReleases": "EraseThreads", "EraseThreads": "!"}, "StopReleases ReleasesStopped EraseThreads Failed", 7, workflow.Failed, "TeardownFailed"},
	"teardown: EraseDeployment stuck": {workflow.Teardown, answers{"StopReleases": "EraseThreads", "EraseThreads": "EraseDeployment", "EraseDeployment": "!"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased EraseDeployment Failed", 8, workflow.Failed, "TeardownFailed"},
	"teardown: a step hangs":          {workflow.Teardown, answers{"StopReleases": "..."}, "StopReleases Failed", 6, workflow.Failed, "TeardownFailed"},

	"run: the store is busy for hours":      {workflow.Run, answers{"Work": hours(busy) + "! !AgentUnavailable Done"}, "Work", many + 3, workflow.Succeeded, ""},
	"webhook: the store is busy for hours":  {workflow.Webhook, answers{"Attempt": hours(busy) + "Wait Done"}, "Attempt Attempted Wait Attempt Attempted Done", many + 2, workflow.Succeeded, ""},
	"teardown: the store is busy for hours": {workflow.Teardown, answers{"StopReleases": hours(busy) + "EraseThreads", "EraseThreads": hours(busy) + "EraseDeployment", "EraseDeployment": hours(busy) + "Done"}, "StopReleases ReleasesStopped EraseThreads ThreadsErased EraseDeployment DeploymentErased Done", 3*many + 3, workflow.Succeeded, ""},
	"restart: the store is busy for hours":  {workflow.Restart, answers{"Restart": hours(busy) + "AwaitRestart", "AwaitRestart": hours(busy) + "Done"}, "Restart Restarted AwaitRestart RestartAwaited Done", 2*many + 2, workflow.Succeeded, ""},
	"rollout: the store is busy for hours":  {workflow.Rollout, answers{"Prepare": hours(busy) + "Provision", "Provision": hours(busy) + "Build", "Build": hours(busy) + "x", "AwaitBuild": hours(busy) + "Deploy", "Deploy": hours(busy) + "x", "AwaitHealthy": hours(busy) + "Promote", "Promote": hours(busy) + "Done"}, "Prepare Prepared Provision Provisioned Build AwaitBuild BuildAwaited Deploy AwaitHealthy HealthAwaited Promote Promoted Done", 7*many + 7, workflow.Succeeded, ""},
	"rollout: no room for hours":            {workflow.Rollout, answers{"Prepare": "Provision", "Provision": "Build", "Build": hours(full) + "x", "AwaitBuild": hours(full) + "Deploy", "Deploy": hours(full) + "x", "AwaitHealthy": hours(full) + "Promote"}, "Prepare Prepared Provision Provisioned Build AwaitBuild BuildAwaited Deploy AwaitHealthy HealthAwaited Promote Promoted Done", 4*many + 7, workflow.Succeeded, ""},
	"restart: no room for hours":            {workflow.Restart, answers{"Restart": hours(full) + "AwaitRestart", "AwaitRestart": "Done"}, "Restart Restarted AwaitRestart RestartAwaited Done", many + 2, workflow.Succeeded, ""},
}

type answers = map[string]string

// many is how often a task is refused before it is accepted, with full jitter for about seven
// hours.
const many = 900

const busy, full = "!" + workflow.ErrorBusy, "!" + workflow.ErrorNoCapacity

func hours(refusal string) string { return strings.Repeat(refusal+" ", many) }

// TestRealMachines drives the machines through every one of their transitions.
func TestRealMachines(t *testing.T) { //nolint:tparallel // its part returns when the parallel ones have
	t.Parallel()
	var mu sync.Mutex
	taken := map[string]bool{}
	t.Run("drives", func(t *testing.T) {
		for name, d := range drives {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, tb *outsideTable) { d.check(t, tb) })
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(taken, d.transitions())
			})
		}
	})
	for _, transition := range allTransitions(t) {
		if !taken[transition] {
			t.Errorf("no drive takes %s", transition)
		}
	}
}

func (d drive) functions(t *testing.T) *answering {
	t.Helper()
	functions := &answering{t: t, left: map[string][]string{}}
	for step, list := range d.answers {
		functions.left[step] = strings.Fields(list)
	}
	return functions
}

// newMachines makes an engine with the real state machines, whose tasks all call one function.
func newMachines(t *testing.T, tb *outsideTable, call workflow.TaskFunc, h *history) *local.Engine {
	t.Helper()
	e, err := local.New(local.Config{
		Table:         tb,
		Definitions:   statemachines.Files,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
		Functions:     map[string]workflow.TaskFunc{"rollout": call, "runner": call, "webhook": call},
		Log:           slog.New(slog.DiscardHandler),
		Observer:      h.observe,
	})
	check.Must(t, err)
	return e
}

// check runs the drive and compares the result.
func (d drive) check(t *testing.T, tb *outsideTable) {
	t.Helper()
	h, functions := newHistory(), d.functions(t)
	e := newMachines(t, tb, functions.call, h)
	t.Cleanup(func() { cutOff(e) })
	check.Must(t, e.Start(t.Context(), d.machine, "e1", []byte(ids)))
	h.await("e1")
	got, err := e.Describe(t.Context(), d.machine, "e1")
	check.Must(t, err)
	if got.Status != d.status || got.Error != d.err {
		t.Errorf("got status %s and error %q, want %s and %q", got.Status, got.Error, d.status, d.err)
	}
	if path := h.path(); path != d.path {
		t.Errorf("got path %s\nwant     %s", path, d.path)
	}
	if calls := functions.count(); calls != d.calls {
		t.Errorf("got %d calls, want %d", calls, d.calls)
	}
}

// TestRunCostsTwoTransactions checks the property of the run machine on which its throughput
// depends.
func TestRunCostsTwoTransactions(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		drives["run: done"].check(t, tb)
		if got := tb.writes.Load(); got != 2 {
			t.Errorf("got %d transactions, want 2", got)
		}
	})
}

const ids = `{"workspace_id": "w", "deployment_id": "d", "revision_id": "v", "restart_id": "s", "thread_id": "t", "run_id": "r", "log_id": "l", "delivery_id": "m", "teardown": 1}`

// path lists the states that were entered.
func (h *history) path() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []string
	for _, event := range h.events {
		if strings.HasSuffix(string(event.Type), "StateEntered") {
			states = append(states, event.State)
		}
	}
	return strings.Join(states, " ")
}

// answering stands for the functions. It checks that their payload holds only the ids, except the
// error with which the run machine gives up.
type answering struct {
	t     *testing.T
	mu    sync.Mutex
	left  map[string][]string
	calls int
}

func (a *answering) call(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	answer := a.next(payload)
	if answer == "..." {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if name, failed := strings.CutPrefix(answer, "!"); failed && name != "" {
		return nil, &workflow.TaskError{Name: name}
	} else if failed {
		return nil, errors.New("broken")
	}
	return answerJSON(answer), nil
}

// answerJSON is the answer of a function, also in testdata/referee. The machines that wait
// read from it until when they wait.
func answerJSON(next string) json.RawMessage {
	return fmt.Appendf(nil, `{"next": %q, "due": "2000-01-15T12:00:00.000001Z"}`, next)
}

func (a *answering) next(payload json.RawMessage) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(payload, &got), json.Unmarshal([]byte(ids), &want)); err != nil {
		a.t.Error(err)
	}
	step, _ := got["step"].(string)
	for name, id := range got {
		if step == "GiveUp" && name == "error" {
			if caught, _ := id.(map[string]any); caught["Error"] == nil || caught["Cause"] == nil {
				a.t.Errorf("step %s: got error %v, want its name and cause", step, id)
			}
		} else if name != "step" && id != want[name] {
			a.t.Errorf("step %s: got %s %q, want %q", step, name, id, want[name])
		}
	}
	list := a.left[step]
	switch len(list) {
	case 0:
		return "Done"
	case 1:
		return list[0]
	}
	a.left[step] = list[1:]
	return list[0]
}

func (a *answering) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

// transitions are the transitions on the drive's path.
func (d drive) transitions() map[string]bool {
	transitions := map[string]bool{}
	states := strings.Fields(d.path)
	for i := 1; i < len(states); i++ {
		transitions[string(d.machine)+": "+states[i-1]+" -> "+states[i]] = true
	}
	return transitions
}

// allTransitions reads from the definitions the next states of every state.
func allTransitions(t *testing.T) []string {
	t.Helper()
	type leads struct {
		Next, Default  string
		Choices, Catch []struct{ Next string }
	}
	found := map[string]bool{}
	for _, machine := range []workflow.Machine{workflow.Rollout, workflow.Restart, workflow.Run, workflow.Teardown, workflow.Webhook} {
		text, err := fs.ReadFile(statemachines.Files, string(machine)+".asl.json")
		check.Must(t, err)
		var definition struct{ States map[string]leads }
		check.Must(t, json.Unmarshal(text, &definition))
		for name, state := range definition.States {
			for _, next := range append(append(state.Choices, state.Catch...), struct{ Next string }{state.Next}, struct{ Next string }{state.Default}) {
				if next.Next != "" {
					found[string(machine)+": "+name+" -> "+next.Next] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestRealMachinesNeedTheirFunctions checks that New reports a forgotten substitution or
// function.
func TestRealMachinesNeedTheirFunctions(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	_, err := local.New(local.Config{
		Table:         fileTable(t),
		Definitions:   statemachines.Files,
		Substitutions: map[string]string{"RolloutFunctionArn": "rollout"},
		Functions:     map[string]workflow.TaskFunc{"runner": nothing},
	})
	if err == nil {
		t.Fatal("got no error")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		if strings.Contains(line, "state GiveUp") || strings.Contains(line, "state EraseThreads") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		"machine run, state GiveUp: the substitution ${RunnerFunctionArn} is not supplied",
		`machine teardown, state EraseThreads: there is no function "rollout"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]local.Config{
		"no table":       {Definitions: statemachines.Files},
		"no definitions": {Table: fileTable(t)},
		"empty folder":   {Table: fileTable(t), Definitions: emptyFolder{}},
	} {
		if _, err := local.New(config); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// emptyFolder holds no files.
type emptyFolder struct{}

func (emptyFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
