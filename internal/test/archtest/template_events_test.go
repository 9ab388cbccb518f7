package archtest_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

// sample is a file with an event that the trigger of a function sends.
type sample struct {
	file
	function string
	// bad says that the function has to refuse the event.
	bad bool
}

// samples returns the samples of each function, by logical id.
func samples(t *testing.T) map[string][]sample {
	t.Helper()
	found := map[string][]sample{}
	functions := stack(t, nil).Functions
	for _, f := range files(t) {
		rest, ok := strings.CutPrefix(f.name, "events/")
		if !ok {
			continue
		}
		folder, name, _ := strings.Cut(rest, "/")
		function := ""
		for id := range functions {
			if strings.ToLower(id) == folder {
				function = id
			}
		}
		if function == "" || path.Ext(name) != ".json" {
			t.Errorf("%s is an event of no function", f.name)
		}
		found[function] = append(found[function], sample{f, function, strings.HasPrefix(name, "bad-")})
	}
	return found
}

// strictly reads an event into its trigger's type, and refuses unknown members.
func strictly(t *testing.T, s sample, event any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(s.text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(event); err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
}

func TestEachFunctionHasEvents(t *testing.T) {
	t.Parallel()
	all := samples(t)
	for name := range stack(t, nil).Functions {
		bad := slices.ContainsFunc(all[name], func(s sample) bool { return s.bad })
		good := slices.ContainsFunc(all[name], func(s sample) bool { return !s.bad })
		if !bad || !good {
			t.Errorf("events/%s needs an event that is good and one that is bad", strings.ToLower(name))
		}
	}
}

// TestEventsOfTheAPI checks that each operation of the documents has an event, and that each event
// is a request of its function.
func TestEventsOfTheAPI(t *testing.T) {
	t.Parallel()
	s, all, wanted := stack(t, nil), samples(t), places(t)
	shown := map[string]bool{}
	for name, f := range s.Functions {
		if len(f.Routes) == 0 {
			continue
		}
		for _, sample := range all[name] {
			var event events.APIGatewayProxyRequest
			strictly(t, sample, &event)
			route := checkRequest(t, sample, s, wanted, event.Resource, event.Path, event.HTTPMethod, event.PathParameters)
			if route.Function != name {
				t.Errorf("%s: %s goes to %s", sample.name, event.Resource, route.Function)
			}
			_, let := event.RequestContext.Authorizer["workspace"].(string)
			if let != (route.Authorizer != "") && !sample.bad {
				t.Errorf("%s: it has a workspace: %t; the route has authorizer %q", sample.name, let, route.Authorizer)
			}
			checkHeaders(t, sample, event.Headers, event.MultiValueHeaders)
			if !sample.bad {
				at, _ := placeOf(t, wanted, event.HTTPMethod, event.Path)
				shown[at.function+" "+at.operations[event.HTTPMethod]] = true
			}
		}
	}
	for route, place := range wanted {
		for method, operation := range place.operations {
			if !shown[place.function+" "+operation] {
				t.Errorf("%s %s has no event", method, route)
			}
		}
	}
}

// checkRequest checks that a request belongs to the API, and returns its route.
func checkRequest(t *testing.T, sample sample, s *template.Stack, wanted map[string]place, resource, at, method string, parameters map[string]string) template.Route {
	t.Helper()
	filled := resource
	for name, value := range parameters {
		filled = strings.NewReplacer("{"+name+"}", value, "{"+name+"+}", value).Replace(filled)
	}
	if filled != at {
		t.Errorf("%s: %s with its parameters is %s, not %s", sample.name, resource, filled, at)
	}
	router, err := template.NewRouter(s.Routes, s.API.Authorizers)
	check.Must(t, err)
	route, _, there := router.Find(method, at)
	if !there || route.Path != resource {
		t.Errorf("%s: %s goes to %q, not to %s", sample.name, at, route.Path, resource)
		return template.Route{}
	}
	documented, _ := placeOf(t, wanted, method, at)
	if _, known := documented.operations[method]; !known && !sample.bad {
		t.Errorf("%s: %s has no %s", sample.name, resource, method)
	}
	return route
}

// checkHeaders checks that the two forms in which API Gateway sends headers are equal.
func checkHeaders(t *testing.T, sample sample, single map[string]string, multiple map[string][]string) {
	t.Helper()
	for name, value := range single {
		if !slices.Contains(multiple[name], value) {
			t.Errorf("%s: %s has different values", sample.name, name)
		}
	}
	if len(single) != len(multiple) || single["Host"] == "" {
		t.Errorf("%s: headers are missing", sample.name)
	}
}

func TestEventsOfTheAuthorizer(t *testing.T) {
	t.Parallel()
	s, wanted := stack(t, nil), places(t)
	used := map[string]bool{}
	for _, sample := range samples(t)["Authorizer"] {
		// This type lacks some of the context's members.
		var event events.APIGatewayCustomAuthorizerRequestTypeRequest
		if err := json.Unmarshal([]byte(sample.text), &event); err != nil {
			t.Errorf("%s: %v", sample.name, err)
		}
		route := checkRequest(t, sample, s, wanted, event.Resource, event.Path, event.HTTPMethod, event.PathParameters)
		used[route.Authorizer] = true
		if event.Type != "REQUEST" || !strings.HasSuffix(event.MethodArn, "/"+s.API.Stage+"/"+event.HTTPMethod+event.Path) || route.Authorizer == "" {
			t.Errorf("%s: got %s %s", sample.name, event.Type, event.MethodArn)
		}
		checkHeaders(t, sample, event.Headers, event.MultiValueHeaders)
	}
	for name := range s.API.Authorizers {
		if !used[name] {
			t.Errorf("the authorizer %s has no event", name)
		}
	}
}

// TestEventsOfTasks checks that each Task state has an event with the members that the state
// sends.
func TestEventsOfTasks(t *testing.T) {
	t.Parallel()
	s, all := stack(t, nil), samples(t)
	for _, m := range s.Machines {
		text, err := statemachines.Files.ReadFile(path.Base(m.Definition))
		check.Must(t, err)
		for name, state := range tasks(t, text) {
			arn := m.Substitutions[strings.Trim(state.Parameters.FunctionName, "${}")]
			_, called, _ := strings.Cut(arn, ":function:")
			function, _, _ := strings.Cut(called, ":")
			var want []string
			for member := range state.Parameters.Payload {
				want = append(want, strings.TrimSuffix(member, ".$"))
			}
			slices.Sort(want)
			shown := false
			for _, sample := range all[function] {
				var payload map[string]any
				strictly(t, sample, &payload)
				if payload["step"] != state.Parameters.Payload["step"] {
					continue
				}
				shown = shown || !sample.bad
				if got := slices.Sorted(maps.Keys(payload)); !slices.Equal(got, want) {
					t.Errorf("%s: got %v, the state %s sends %v", sample.name, got, name, want)
				}
			}
			if !shown {
				t.Errorf("%s of %s has no event", name, m.Name)
			}
		}
	}
}

func TestEventsOfTheTimer(t *testing.T) {
	t.Parallel()
	for _, sample := range samples(t)["Reconcile"] {
		var event events.EventBridgeEvent
		strictly(t, sample, &event)
		switch {
		case path.Base(sample.name) == "by-hand.json" || event.Source == "aws.events":
		case event.Source == "aws.ecs" && event.DetailType == ecs.TaskStateChange:
		default:
			t.Errorf("%s: got %q from %q", sample.name, event.DetailType, event.Source)
		}
	}
}

// TestReconcileIsToldOfTasksThatEnd checks which events the rule lets through: the ends of
// tasks of the stack's own services.
func TestReconcileIsToldOfTasksThatEnd(t *testing.T) {
	t.Parallel()
	s := stack(t, variants["with agents"])
	want := []map[string]any{{
		"source": []any{"aws.ecs"}, "detail-type": []any{ecs.TaskStateChange},
		"detail": map[string]any{
			"clusterArn": []any{"arn:aws:ecs:us-east-1:000000000000:cluster/" + stackName}, "lastStatus": []any{"STOPPED"},
			"group": []any{map[string]any{"prefix": "service:" + s.Functions["Rollout"].Environment["SLIPWAY_NAME_PREFIX"] + "-"}},
		},
	}}
	if diff := cmp.Diff(want, s.Functions["Reconcile"].Patterns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
