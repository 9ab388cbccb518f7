package ecs_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/ecs"
	"github.com/slipway-run/slipway/internal/test/check"
)

const account = "123456789012"

// hasher is a secret.Hasher without a secret.
type hasher struct{}

func (hasher) MAC(purpose string, data []byte) []byte {
	sum := sha256.Sum256(append([]byte(purpose+"/"), data...))
	return sum[:]
}

// awsConfig is the configuration for services that answer at the URL.
func awsConfig(url string) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
		Retryer: func() aws.Retryer { // the SDK's own, but it retries at once
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
}

// testConfig is a configuration whose waits are short.
func testConfig(cfg aws.Config) ecs.Config {
	return ecs.Config{
		AWS: cfg, NamePrefix: "slipway", Cluster: "agents", Subnets: []string{"subnet-1", "subnet-2"}, SecurityGroups: []string{"sg-1"},
		ExecutionRole: "arn:aws:iam::" + account + ":role/execution", TaskRole: "arn:aws:iam::" + account + ":role/task",
		InfrastructureRole: "arn:aws:iam::" + account + ":role/infrastructure", LogGroup: "/slipway/agents",
		VPC: "vpc-1", ALBListener: "arn:aws:elasticloadbalancing:eu-central-1:" + account + ":listener/app/agents/1/2", ALBURL: "http://agents.internal",
		Hasher: hasher{}, After: func(time.Duration) <-chan time.Time { return time.After(10 * time.Millisecond) },
	}
}

func newRelease() compute.Release {
	ref := compute.Ref{Workspace: id.New(time.Now()), Deployment: id.New(time.Now()), Revision: id.New(time.Now())}
	return compute.Release{
		Ref: ref, Token: "token-of-" + ref.Revision,
		Artifact: build.Artifact{Image: "registry.test/agent@sha256:1", Env: map[string]string{"FILE": "from the file", "PORT": "9000"}},
		Env:      map[string]string{"PASSWORD": "hunter2", "SLIPWAY_REVISION_ID": ref.Revision, "HOST": "::1"},
	}
}

// once returns a context and a setting that let an Await look once: the context ends when the
// Await begins to wait.
func once(t *testing.T) (context.Context, func(*ecs.Config)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(c *ecs.Config) {
		c.After = func(time.Duration) <-chan time.Time {
			cancel()
			return nil
		}
	}
}

// cutter is an HTTP client that lets a number of requests through and no more. The last of
// them arrives, but its answer does not.
type cutter struct {
	mu   sync.Mutex
	left int
}

func (c *cutter) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.left--
	left := c.left
	c.mu.Unlock()
	if left < 0 {
		return nil, context.Canceled
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil && left == 0 {
		answer.Body.Close()
		return nil, context.Canceled
	}
	return answer, err
}

// recorded answers requests as the services are known to answer. An operation for which a test
// has no answer gets an empty answer.
type recorded struct {
	t *testing.T
	*httptest.Server

	mu sync.Mutex
	// answers are given one after the other. The last answer of an operation is repeated for
	// ever.
	answers map[string][]answer
	calls   []call
}

// answer is a status, 200 if it is 0, and a body: JSON, or for load balancers the XML inside
// the result.
type answer struct {
	status int
	body   string
}

type call struct{ operation, body string }

func (c call) String() string { return c.operation + " " + c.body }

func refusal(status int, code, message string) answer {
	return answer{status, fmt.Sprintf(`{"__type":%q,"message":%q,"Message":%q}`, code, message, message)}
}

// elbRefusal is a refusal of the service that speaks XML.
func elbRefusal(code, message string) answer {
	return answer{http.StatusBadRequest, "<ErrorResponse><Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + message + "</Message></Error><RequestId>1</RequestId></ErrorResponse>"}
}

func newRecorded(t *testing.T, answers map[string][]answer) *recorded {
	t.Helper()
	r := &recorded{t: t, answers: map[string][]answer{
		"DescribeTargetGroups":   {elbRefusal("TargetGroupNotFound", "One or more target groups not found")},
		"CreateTargetGroup":      {{0, "<TargetGroups><member><TargetGroupArn>arn:group</TargetGroupArn></member></TargetGroups>"}},
		"CreateSecret":           {{0, `{"ARN":"arn:aws:secretsmanager:eu-central-1:123456789012:secret:x-AbCdEf"}`}},
		"DescribeTaskDefinition": {refusal(400, "ClientException", "Unable to describe task definition.")},
		"RegisterTaskDefinition": {{0, `{"taskDefinition":{"taskDefinitionArn":"arn:task"}}`}},
	}}
	maps.Copy(r.answers, answers)
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *recorded) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		r.t.Error(err)
	}
	_, operation, isJSON := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			r.t.Error(err)
		}
		operation = form.Get("Action")
		body = []byte(form.Encode())
	}
	given := r.next(call{operation, string(body)})
	switch {
	case isJSON:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if given.body == "" {
			given.body = "{}"
		}
	case given.status == 0 || given.status == http.StatusOK:
		w.Header().Set("Content-Type", "text/xml")
		given.body = fmt.Sprintf("<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>", operation, given.body)
	}
	if given.status != 0 {
		w.WriteHeader(given.status)
	}
	fmt.Fprint(w, given.body)
}

func (r *recorded) next(c call) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	given := r.answers[c.operation]
	if len(given) == 0 {
		return answer{}
	}
	if len(given) > 1 {
		r.answers[c.operation] = given[1:]
	}
	return given[0]
}

// of returns the bodies of the calls of an operation.
func (r *recorded) of(operation string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var bodies []string
	for _, c := range r.calls {
		if c.operation == operation {
			bodies = append(bodies, c.body)
		}
	}
	return bodies
}

// operations are the names of the calls, in order.
func (r *recorded) operations() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, c := range r.calls {
		names = append(names, c.operation)
	}
	return strings.Join(names, " ")
}

func (r *recorded) config() ecs.Config {
	return testConfig(awsConfig(r.URL))
}

func (r *recorded) target(change ...func(*ecs.Config)) *ecs.Target {
	r.t.Helper()
	cfg := r.config()
	for _, c := range change {
		c(&cfg)
	}
	target, err := ecs.New(cfg)
	check.Must(r.t, err)
	return target
}

// service is an answer of DescribeServices.
func service(members string) []answer {
	return []answer{{0, `{"services":[{"serviceName":"slipway-x","serviceArn":"arn:service","taskDefinition":"arn:task",` + members + `}]}`}}
}

// deploying is a service whose deployment began at the present time of the tests.
func deploying(state string, members ...string) []answer {
	return service(`"status":"ACTIVE","desiredCount":1,"runningCount":0,"deployments":[{"id":"ecs-svc/1","status":"PRIMARY","desiredCount":1,"runningCount":0,` +
		`"createdAt":1767268800,"rolloutState":"` + state + `","rolloutStateReason":"ECS deployment circuit breaker: tasks failed to start."}]` + strings.Join(append([]string{""}, members...), ","))
}

// events are the events of a service, newest first.
func events(at int, messages ...string) string {
	var all []string
	for _, message := range messages {
		text, _ := json.Marshal(message)
		all = append(all, fmt.Sprintf(`{"id":"1","createdAt":%d,"message":%s}`, at, text))
	}
	return `"events":[` + strings.Join(all, ",") + `]`
}

// stopped is an answer of DescribeTasks with one task of the deployment.
func stopped(code, reason, container string) []answer {
	text, _ := json.Marshal(reason)
	return []answer{{0, fmt.Sprintf(`{"tasks":[{"startedBy":"ecs-svc/1","stopCode":%q,"stoppedReason":%s,"containers":[{"name":"Main"%s}]}]}`, code, text, container)}}
}
