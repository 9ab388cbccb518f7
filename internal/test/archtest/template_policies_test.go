package archtest_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/seam/registry/ecr"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/template"
)

func TestFunctionsMayDoWhatTheyDoAndNoMore(t *testing.T) {
	t.Parallel()
	s, granted := stack(t, variants["with agents"]), grants(t)
	for _, f := range s.Functions {
		may := map[string]bool{}
		for _, statement := range f.Statements {
			for _, action := range statement.Actions {
				if !strings.HasPrefix(action, "states:") {
					may[action] = true
					continue
				}
				for _, resource := range statement.Resources {
					_, machine, _ := strings.Cut(resource, ":"+stackName+"-")
					may[action+" "+strings.TrimSuffix(machine, ":*")] = true
				}
			}
		}
		want := map[string]bool{}
		for _, action := range granted[f.Name] {
			want[action] = true
		}
		if diff := cmp.Diff(want, may); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
}

func TestTheBuildMayDoWhatItsScriptDoes(t *testing.T) {
	t.Parallel()
	var may []string
	for _, statement := range stack(t, nil).Roles["BuildRole"].Statements {
		may = append(may, statement.Actions...)
	}
	want := append(slices.Clone(buildActions), "logs:CreateLogStream", "logs:PutLogEvents")
	if diff := cmp.Diff(want, may, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhoPushesMayDoWhatItTakes compares the role of the tokens with the permissions to which
// its sessions are narrowed.
func TestWhoPushesMayDoWhatItTakes(t *testing.T) {
	t.Parallel()
	var may []string
	for _, statement := range stack(t, nil).Roles["PushRole"].Statements {
		may = append(may, statement.Actions...)
	}
	want := append(slices.Clone(ecr.HolderActions), "ecr:GetAuthorizationToken")
	if diff := cmp.Diff(want, may, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoPolicyIsWide checks every statement in the whole template.
func TestNoPolicyIsWide(t *testing.T) {
	t.Parallel()
	eachStack(t, func(t *testing.T, s *template.Stack) {
		for _, resource := range s.Resources {
			if resource.Name == functionBoundary {
				continue // the statement allows nothing by itself
			}
			eachMap(resource.Properties, func(m map[string]any) {
				if m["Effect"] == nil {
					return
				}
				statement := statementOf(t, m)
				if m["Principal"] != nil {
					if statement.Effect == "Deny" {
						return // it lets nobody in
					}
					checkPrincipal(t, resource.Name, m)
					return
				}
				checkStatement(t, resource.Name, statement)
			})
		}
		for _, f := range s.Functions {
			if len(f.Managed) > 0 {
				t.Errorf("%s has %v: what a function may do is written in the template", f.Name, f.Managed)
			}
		}
		role := s.Roles["AgentTaskRole"]
		if len(role.Managed) > 0 || slices.ContainsFunc(role.Statements, func(s template.Statement) bool { return s.Effect != "Deny" }) {
			t.Error("agents may do something in the account")
		}
	})
}

// TestUploadsNeedTLS: the bucket of uploaded sources refuses what is not encrypted on its way.
func TestUploadsNeedTLS(t *testing.T) {
	t.Parallel()
	policy := resourceNamed(t, stack(t, nil), "UploadsPolicy").Properties
	refuses := false
	eachMap(policy, func(m map[string]any) {
		if m["Effect"] == "Deny" {
			s := statementOf(t, m)
			refuses = m["Principal"] == "*" && slices.Equal(s.Action, texts{"s3:*"}) && slices.Equal(s.Resource, texts{"Uploads.Arn", "Uploads.Arn/*"}) &&
				s.Condition["Bool"]["aws:SecureTransport"] == "false"
		}
	})
	if !refuses || policy["Bucket"] != "Uploads" {
		t.Errorf("the policy is %v", policy)
	}
}

type statement struct {
	Effect           string
	Action, Resource texts
	Condition        map[string]map[string]any
}

type texts []string

func (l *texts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = texts{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

func statementOf(t *testing.T, m map[string]any) statement {
	t.Helper()
	text, err := json.Marshal(m)
	check.Must(t, err)
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func checkStatement(t *testing.T, name string, s statement) {
	t.Helper()
	if s.Effect == "Deny" {
		return // it takes away what another statement allows
	}
	if s.Effect != "Allow" || len(s.Action) == 0 || len(s.Resource) == 0 {
		t.Errorf("%s: %+v says nothing", name, s)
	}
	for _, action := range s.Action {
		if strings.Contains(action, "*") || strings.HasSuffix(action, ":Scan") || strings.HasPrefix(action, "dynamodb:PartiQL") {
			t.Errorf("%s may %s", name, action)
		}
		if action == "iam:PassRole" && s.Condition["StringEquals"]["iam:PassedToService"] == nil {
			t.Errorf("%s may pass a role to any service", name)
		}
	}
	for _, resource := range s.Resource {
		switch {
		case resource == "*":
			wide := slices.DeleteFunc(slices.Clone(s.Action), func(action string) bool { return slices.Contains(unscoped, action) })
			if len(wide) > 0 || len(s.Condition) == 0 {
				t.Errorf("%s may %v with everything", name, wide)
			}
		case strings.HasSuffix(resource, ":scalable-target/*"):
			// A target's id does not contain the service that it scales.
			if s.Condition["StringEquals"]["application-autoscaling:service-namespace"] != "ecs" {
				t.Errorf("%s may scale everything", name)
			}
		case strings.HasSuffix(resource, ":alarm:*") && slices.Equal(s.Action, []string{"cloudwatch:DescribeAlarms"}):
			// IAM compares a call about several alarms with all alarms. The call changes nothing.
		case isOfSiblings(resource):
			t.Errorf("%s may %v with %s, which another stack's name can begin with", name, s.Action, resource)
		case strings.Contains(resource, "*") && !strings.Contains(resource, stackName) && !strings.Contains(resource, deployedName) && !ownARN.MatchString(resource):
			t.Errorf("%s may %v with %s, which is not of this stack alone", name, s.Action, resource)
		}
	}
}

// isOfSiblings reports whether a pattern matches what has the same name in a stack whose own name,
// or prefix, begins with that of the stack.
func isOfSiblings(pattern string) bool {
	matcher := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	for ours, theirs := range map[string]string{stackName: stackName + "dev", deployedName: deployedName + "-dev"} {
		sibling := strings.ReplaceAll(strings.ReplaceAll(pattern, ours, theirs), "*", "x")
		if strings.Contains(pattern, ours) && matcher.MatchString(sibling) {
			return true
		}
	}
	return false
}

// ownARN matches a text that begins with the ARN of a resource of the template whose name
// CloudFormation chooses.
var ownARN = regexp.MustCompile(`^[A-Za-z]+\.Arn/`)

// checkPrincipal checks the principals that a resource or a role admits: a service, the
// account, or every principal under a condition.
func checkPrincipal(t *testing.T, name string, m map[string]any) {
	t.Helper()
	principal, _ := m["Principal"].(map[string]any)
	s := statementOf(t, m)
	if principal == nil || (principal["AWS"] == "*" && s.Condition["StringEquals"]["kms:CallerAccount"] != "000000000000") {
		t.Errorf("%s lets everybody in: %v", name, m)
	}
	for _, service := range []string{"ecs-tasks.amazonaws.com", "ecs.amazonaws.com", "codebuild.amazonaws.com", "codedeploy.amazonaws.com", "events.amazonaws.com", "states.amazonaws.com"} {
		if principal["Service"] == service && s.Condition["StringEquals"]["aws:SourceAccount"] == nil {
			t.Errorf("%s lets %s in for other accounts", name, service)
		}
	}
}

var substitution = regexp.MustCompile(`\$\{([A-Za-z]+)\}`)

func TestMachinesCanDoWhatTheyAreToldTo(t *testing.T) {
	t.Parallel()
	s := stack(t, nil)
	entries, err := statemachines.Files.ReadDir(".")
	check.Must(t, err)
	if len(entries) != len(s.Machines) {
		t.Errorf("there are %d definitions and %d machines", len(entries), len(s.Machines))
	}
	for _, m := range s.Machines {
		file := path.Base(m.Definition)
		name := strings.TrimSuffix(file, ".asl.json")
		text, err := statemachines.Files.ReadFile(file)
		if err != nil || m.Definition != "infra/statemachines/"+file {
			t.Errorf("%s: got definition %s (%v)", m.Name, m.Definition, err)
			continue
		}
		prefix := s.Functions["Runs"].Environment["SLIPWAY_STATE_MACHINES"]
		if want := "arn:aws:states:us-east-1:000000000000:stateMachine:" + m.MachineName; prefix+name != want {
			t.Errorf("functions start %s, the machine is %s", prefix+name, want)
		}
		if m.Kind != "STANDARD" || m.LogLevel != "ERROR" || m.LogsData || !m.Tracing {
			t.Errorf("%s: got %+v", m.Name, m)
		}
		used := map[string]bool{}
		for _, match := range substitution.FindAllSubmatch(text, -1) {
			used[string(match[1])] = true
			if m.Substitutions[string(match[1])] == "" {
				t.Errorf("%s: nothing stands for %s", m.Name, match[0])
			}
		}
		var want []template.Statement
		for supplied, arn := range m.Substitutions {
			if !used[supplied] {
				t.Errorf("%s: %s is not in the definition", m.Name, supplied)
			}
			want = append(want, template.Statement{Effect: "Allow", Actions: []string{"lambda:InvokeFunction"}, Resources: []string{arn}})
		}
		for _, state := range tasks(t, text) {
			if state.Resource != "arn:aws:states:::lambda:invoke" || !substitution.MatchString(state.Parameters.FunctionName) {
				t.Errorf("%s calls %s of %s, which its role does not allow", m.Name, state.Resource, state.Parameters.FunctionName)
			}
		}
		calls := slices.DeleteFunc(slices.Clone(m.Statements), func(s template.Statement) bool { return strings.HasPrefix(s.Actions[0], "logs:") })
		if !slices.Equal(s.Roles[m.Role].Services, []string{"states.amazonaws.com"}) {
			t.Errorf("%s has no role of its own, and that of SAM admits any account", m.Name)
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s may call (-want +got):\n%s", m.Name, diff)
		}
	}
}

// task is a Task state.
type task struct {
	Type, Resource string
	Parameters     struct {
		FunctionName string
		Payload      map[string]string
	}
}

// tasks returns the Task states of a definition, by name.
func tasks(t *testing.T, text []byte) map[string]task {
	t.Helper()
	var definition struct{ States map[string]json.RawMessage }
	check.Must(t, json.Unmarshal(text, &definition))
	found := map[string]task{}
	for name, state := range definition.States {
		var kind struct{ Type string }
		check.Must(t, json.Unmarshal(state, &kind))
		if kind.Type != "Task" {
			continue
		}
		var read task
		check.Must(t, json.Unmarshal(state, &read))
		found[name] = read
	}
	return found
}

func TestTheKeyOfTheTableIsKept(t *testing.T) {
	t.Parallel()
	s := stack(t, nil)
	key := s.Resources["Key"]
	if key.DeletionPolicy != "RetainExceptOnCreate" || key.UpdateReplacePolicy != "Retain" || key.Properties["EnableKeyRotation"] != true {
		t.Errorf("without its key the table is lost; got %+v", key)
	}
	if key.Properties["MultiRegion"] != true {
		t.Error("a key that is of one region can never become one of several")
	}
}

// TestAttackUploadsThatNobodyNames checks that the bucket removes uploads with the tag of uploads
// that no revision has named, and no other uploads.
func TestAttackUploadsThatNobodyNames(t *testing.T) {
	t.Parallel()
	lifecycle, _ := resourceNamed(t, stack(t, nil), "Uploads").Properties["LifecycleConfiguration"].(map[string]any)
	expires := 0
	for _, r := range lifecycle["Rules"].([]any) {
		rule, _ := r.(map[string]any)
		if rule["ExpirationInDays"] == nil {
			continue
		}
		expires++
		want := []any{map[string]any{"Key": s3.TagKey, "Value": s3.TagValue}}
		if diff := cmp.Diff(want, rule["TagFilters"]); diff != "" || rule["ExpirationInDays"] != 1.0 || rule["Status"] != "Enabled" {
			t.Errorf("after %v days it removes (-want +got):\n%s", rule["ExpirationInDays"], diff)
		}
	}
	if expires != 1 {
		t.Errorf("%d rules remove something", expires)
	}
}

func TestReconcileIsCalledEachMinute(t *testing.T) {
	t.Parallel()
	s := stack(t, nil)
	if len(s.Schedules) != 1 || s.Schedules[0].Function != "Reconcile" || s.Schedules[0].Expression != "rate(1 minute)" {
		t.Errorf("got %+v", s.Schedules)
	}
	if s.Functions["Reconcile"].Timeout >= s.Schedules[0].Every {
		t.Error("a call may still work when the next one begins")
	}
	if letters, _ := s.Resources["Reconcile"].Properties["DeadLetterQueue"].(map[string]any); letters["TargetArn"] == nil {
		t.Error("calls that fail are lost")
	}
}
