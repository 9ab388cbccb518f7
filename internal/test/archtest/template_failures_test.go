package archtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/template"
)

// expectErrors are the functions that end with errors which their callers expect: machines; API
// Gateway, which answers 401 only to an error of the authorizer; and clients that take a stream up
// again, which a normal end would tell that it is over.
var expectErrors = []string{"Authorizer", "Agentroutes", "Runstream", "ManagedRunstream", "Runner", "ManagedRunner", "Rollout"}

// TestOnlyRealFailuresOfTasksCount ends a task in each way, and looks whether the log metrics that
// the alarms read count its lines.
func TestOnlyRealFailuresOfTasksCount(t *testing.T) {
	t.Parallel()
	named := func(name string) error {
		return fmt.Errorf("Work: %w", &workflow.TaskError{Name: name, Cause: lambdahost.Failed})
	}
	ways := map[string]struct {
		err    error
		counts bool
	}{
		"well":                 {nil, false},
		"not due":              {named("NotDue"), false},
		"another task goes on": {named("NextSlice"), false},
		"waits for its turn":   {named(workflow.ErrorNoCapacity), false},
		"busy":                 {named(workflow.ErrorBusy), false},
		"throttled":            {table.ErrBusy, false},
		"an absent agent":      {named(run.FailureAgentAbsent), false},
		"a broken agent":       {named(run.FailureAgentUnavailable), false},
		"fails":                {errors.New("disk on fire"), true},
		"panics":               {nil, true},
	}
	s := stack(t, variants["on managed instances"])
	for _, filter := range []string{"RunnerFailures", "RolloutFailures", "NewRunnerFailures", "NewRolloutFailures"} {
		for way, c := range ways {
			var logged bytes.Buffer
			log := lambdahost.NewLog(&logged, slog.LevelInfo)
			task := lambdahost.Task(func(context.Context, json.RawMessage) (json.RawMessage, error) {
				if way == "panics" {
					panic("it panics")
				}
				log.Warn("step ended", "error", c.err, "agent", lambdahost.Failed)
				return nil, c.err
			}, log)
			_, _ = task(t.Context(), nil) // the error is for the machine
			if got := count(t, s, filter, logged.String()); (got == 1) != c.counts || got > 1 {
				t.Errorf("%s counts %d lines of a task that ends so: %s:\n%s", filter, got, way, &logged)
			}
		}
	}
}

// TestStrangersRaiseNoAlarm asks the authorizer about callers, and looks whether the log metrics
// that the alarms read count its lines. Strangers must neither raise an alarm nor make a deployment
// go back.
func TestStrangersRaiseNoAlarm(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["on managed instances"])
	for caller, c := range map[string]struct {
		err    error
		counts int
	}{
		"a member":                               {nil, 0},
		"a stranger":                             {fault.New(fault.Unauthorized, "The API key is not valid."), 0},
		"another workspace's":                    {fault.New(fault.Forbidden, "The token is not for this workspace."), 0},
		"a caller whose key cannot be looked up": {errors.New("the key is disabled"), 1},
		"a caller while the table is busy":       {table.ErrBusy, 1},
	} {
		var logged bytes.Buffer
		authorizer := lambdahost.Authorizer(asking{c.err}, nil, nil, time.Now, lambdahost.NewLog(&logged, slog.LevelInfo))
		// The error is for API Gateway.
		_, _ = authorizer(t.Context(), events.APIGatewayCustomAuthorizerRequestTypeRequest{
			Resource: "/v2/deployments", Headers: map[string]string{auth.HeaderKey: "key"},
		})
		for _, filter := range []string{"AuthorizerFailures", "NewAuthorizerFailures"} {
			if got := count(t, s, filter, logged.String()); got != c.counts {
				t.Errorf("%s counts %d lines about %s, want %d:\n%s", filter, got, caller, c.counts, &logged)
			}
		}
		if c.counts > 0 && !strings.Contains(logged.String(), `"version":`) {
			t.Errorf("the line about %s does not name the version:\n%s", caller, &logged)
		}
	}
}

// asking is an auth.Authenticator that gives one answer.
type asking struct{ err error }

func (a asking) Key(*http.Request) (workspace.Principal, error) {
	return workspace.Principal{Workspace: "a"}, a.err
}

// TestStreamsThatEndOnPurposeRaiseNoAlarm ends an answer that has begun in each way, and looks
// whether the log metrics that the alarms read count its lines.
func TestStreamsThatEndOnPurposeRaiseNoAlarm(t *testing.T) {
	t.Parallel()
	const stream, own = "GET /d/{deployment_id}/threads/{thread_id}/stream", "/d/{deployment_id}/{rest...}"
	broken := errors.New("the connection broke")
	s := stack(t, variants["on managed instances"])
	for way, c := range map[string]struct {
		pattern string
		end     func(m *web.Mux, w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc)
		counts  int
	}{
		"its client takes it up again": {stream, func(m *web.Mux, w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc) {
			cancel(fault.New(fault.Unavailable, "Try again."))
			m.Error(w, r, context.Cause(r.Context()))
		}, 0},
		"an own application breaks off": {own, func(m *web.Mux, w http.ResponseWriter, r *http.Request, _ context.CancelCauseFunc) {
			m.Error(w, r, broken)
		}, 0},
		"the platform breaks off": {stream, func(m *web.Mux, w http.ResponseWriter, r *http.Request, _ context.CancelCauseFunc) {
			m.Error(w, r, broken)
		}, 1},
		"it panics": {stream, func(*web.Mux, http.ResponseWriter, *http.Request, context.CancelCauseFunc) { panic("boom") }, 1},
	} {
		var logged bytes.Buffer
		mux := web.NewMux(lambdahost.NewLog(&logged, slog.LevelInfo))
		ctx, cancel := context.WithCancelCause(t.Context())
		mux.Handle(c.pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			c.end(mux, w, r, cancel)
		}))
		func() {
			defer func() { _ = recover() }() // the connection is closed
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/d/1/threads/2/stream", nil))
		}()
		cancel(nil)
		for _, filter := range []string{"AgentroutesFailures", "RunstreamFailures", "NewAgentroutesFailures", "NewRunstreamFailures"} {
			if got := count(t, s, filter, logged.String()); got != c.counts {
				t.Errorf("%s counts %d lines of an answer that ends so: %s, want %d:\n%s", filter, got, way, c.counts, &logged)
			}
		}
	}
}

// TestCrashesOfTasksCount compares the filters with lines of Lambda, and with lines in which a
// function repeats such a line from an agent.
func TestCrashesOfTasksCount(t *testing.T) {
	t.Parallel()
	const id = "9a1c2d34-0000-4000-8000-0123456789ab"
	texts := []string{
		"2026-01-02T03:04:05.678Z " + id + " Task timed out after 900.00 seconds",
		"RequestId: " + id + " Error: Runtime exited with error: signal: killed",
	}
	managed := []string{
		`{"time":"2026-01-02T03:04:05.678Z","type":"platform.report","record":{"requestId":"` + id + `","status":"timeout"}}`,
		`{"time":"2026-01-02T03:04:05.678Z","type":"platform.report","record":{"requestId":"` + id + `","status":"error","errorType":"Runtime.ExitError"}}`,
	}
	var others []string
	for _, line := range slices.Concat(texts, managed) {
		var logged bytes.Buffer
		lambdahost.NewLog(&logged, slog.LevelInfo).Error(line, "type", "agent", "error", line, "output", "\n"+line)
		others = append(others, logged.String())
	}
	others = append(others,
		"START RequestId: "+id+" Version: 7", "END RequestId: "+id,
		"REPORT RequestId: "+id+"\tDuration: 12.34 ms\tBilled Duration: 13 ms",
		`{"type":"platform.report","record":{"status":"error","errorType":"NotDue"}}`, `{"type":"platform.report","record":{"status":"success"}}`,
	)
	s := stack(t, variants["on managed instances"])
	for filter, wanted := range map[string][]string{
		"AuthorizerCrashes": texts, "AgentroutesCrashes": texts, "RunstreamCrashes": texts, "RunnerCrashes": texts, "RolloutCrashes": texts,
		"ManagedRunstreamCrashes": managed, "ManagedRunnerCrashes": managed,
	} {
		for _, line := range wanted {
			if count(t, s, filter, line) != 1 {
				t.Errorf("%s does not count %s", filter, line)
			}
		}
		for _, line := range others {
			if count(t, s, filter, line) != 0 {
				t.Errorf("%s counts %s", filter, line)
			}
		}
	}
}

// TestAlarmsOfTasksReadWhatTheFiltersWrite checks that no alarm about tasks reads Lambda's own
// count of errors, that each reads all metrics of its functions, and that a filter writes them.
func TestAlarmsOfTasksReadWhatTheFiltersWrite(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["on managed instances"])
	written := map[string]string{}
	for _, r := range s.Resources {
		if r.Type == "AWS::Logs::MetricFilter" {
			eachMap(r.Properties["MetricTransformations"], func(m map[string]any) {
				if metric, ok := m["MetricName"].(string); ok {
					written[metric] = fmt.Sprint(m["MetricNamespace"])
				}
			})
		}
	}
	for alarm, want := range map[string][]string{
		"AuthorizerAlarm":      {"AuthorizerFailures", "AuthorizerCrashes", "Throttles"},
		"AgentroutesAlarm":     {"AgentroutesFailures", "AgentroutesCrashes", "Throttles"},
		"RunstreamAlarm":       {"RunstreamFailures", "RunstreamCrashes", "Throttles", "Throttles"},
		"RunnerAlarm":          {"RunnerFailures", "RunnerCrashes"},
		"RolloutAlarm":         {"RolloutFailures", "RolloutCrashes", "Throttles"},
		"NewControlPlaneAlarm": slices.Concat([]string{"VersionFailures"}, slices.Repeat([]string{"Errors"}, 7)),
		"NewAgentServerAlarm":  {"VersionFailures", "VersionFailures", "AgentroutesCrashes", "RunstreamCrashes", "AuthorizerCrashes", "Errors", "Errors", "Errors"},
		"NewWorkersAlarm":      {"VersionFailures", "VersionFailures", "Errors", "Errors", "RunnerCrashes", "RolloutCrashes"},
		"NewApiAlarm":          {"ApiFailures"},
	} {
		var read []string
		eachMap(resourceNamed(t, s, alarm).Properties, func(m map[string]any) {
			metric, ok := m["MetricName"].(string)
			if !ok {
				return
			}
			read = append(read, metric)
			if m["Namespace"] != "AWS/Lambda" && m["Namespace"] != written[metric] {
				t.Errorf("%s reads %v %s, which no filter writes", alarm, m["Namespace"], metric)
			}
			eachMap(m["Dimensions"], func(d map[string]any) {
				if value, _ := d["Value"].(string); metric == "Errors" && slices.Contains(expectErrors, value) {
					t.Errorf("%s counts each expected outcome of %s", alarm, value)
				}
			})
		})
		slices.Sort(read)
		slices.Sort(want)
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s (-want +got):\n%s", alarm, diff)
		}
	}
}

// TestNoAgentKeepsAStackFromBeingDeployed checks which answers of the API make a deployment go
// back.
func TestNoAgentKeepsAStackFromBeingDeployed(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["on managed instances"])
	for line, want := range map[string]int{
		`{"route":"/d/{deployment_id}/threads","status":500}`:         1,
		`{"route":"/v2/deployments","status":500}`:                    1,
		`{"route":"/d/{deployment_id}/runs/wait","status":503}`:       0, // a broken agent
		`{"route":"/d/{deployment_id}/{proxy+}","status":500}`:        0, // an own application
		`{"route":"/d/{deployment_id}","status":500}`:                 0,
		`{"route":"/d/{deployment_id}/threads/search","status":200}`:  0,
		`{"route":"/d/{deployment_id}/threads/search","status":5000}`: 0,
	} {
		if got := count(t, s, "NewApiFailures", line); got != want {
			t.Errorf("%d of %s count, want %d", got, line, want)
		}
	}
}

// TestEachStuckDeploymentCounts checks that the line of a stuck deployment counts, and that the
// line with all errors of the pass does not.
func TestEachStuckDeploymentCounts(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := lambdahost.NewLog(&logged, slog.LevelInfo)
	log.Error(deployment.Stuck, "deployment", "one")
	log.Error(deployment.Stuck, "deployment", "two")
	log.Error(lambdahost.Failed, "error", deployment.Stuck+" one: "+deployment.Stuck)
	if got := count(t, stack(t, nil), "StuckRevisions", logged.String()); got != 2 {
		t.Errorf("%d lines count, want those of two deployments", got)
	}
}

// TestNoMetricCostsWithoutEvents checks that a metric has no value, and no price, in hours in which
// nothing has happened.
func TestNoMetricCostsWithoutEvents(t *testing.T) {
	t.Parallel()
	eachStack(t, func(t *testing.T, s *template.Stack) {
		for _, resource := range s.Resources {
			eachMap(resource.Properties["MetricTransformations"], func(m map[string]any) {
				if m["DefaultValue"] != nil {
					t.Errorf("%s has a value for each line of the log", resource.Name)
				}
			})
		}
	})
}

// count returns how many of the lines a log filter counts.
func count(t *testing.T, s *template.Stack, filter, lines string) (counted int) {
	t.Helper()
	pattern, _ := resourceNamed(t, s, filter).Properties["FilterPattern"].(string)
	for line := range strings.Lines(lines) {
		if matches(t, pattern, strings.TrimSpace(line)) {
			counted++
		}
	}
	return counted
}

// comparison matches a comparison of a JSON filter.
var comparison = regexp.MustCompile(`\$\.([\w.]+) (!?=) (?:"([^"]*)"|(\d+))`)

// matches applies a filter pattern of CloudWatch Logs: an expression between two %, or conditions
// on the members of a JSON line.
func matches(t *testing.T, pattern, line string) bool {
	t.Helper()
	if expression, ok := strings.CutPrefix(pattern, "%"); ok {
		return regexp.MustCompile(strings.TrimSuffix(expression, "%")).MatchString(line)
	}
	var members map[string]any
	if json.Unmarshal([]byte(line), &members) != nil {
		return false
	}
	condition := comparison.ReplaceAllStringFunc(strings.Trim(pattern, "{} "), func(text string) string {
		parts := comparison.FindStringSubmatch(text)
		var value any = members
		for name := range strings.SplitSeq(parts[1], ".") {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		wanted := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(parts[3]+parts[4]), `\*`, `.*`) + `$`)
		return fmt.Sprint(value != nil && wanted.MatchString(fmt.Sprint(value)) == (parts[2] == "="))
	})
	reduce := strings.NewReplacer("(true)", "true", "(false)", "false", "true && true", "true", "true && false", "false", "false && true", "false", "false && false", "false")
	or := strings.NewReplacer("true || true", "true", "true || false", "true", "false || true", "true", "false || false", "false")
	for range strings.Count(pattern, " ") {
		condition = or.Replace(reduce.Replace(reduce.Replace(condition)))
	}
	if condition != "true" && condition != "false" {
		t.Fatalf("the filter %s is left as %s", pattern, condition)
	}
	return condition == "true"
}
