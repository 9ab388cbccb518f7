package stack_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// variables are an environment.
type variables map[string]string

func (v variables) get(name string) string { return v[name] }

func complete() variables {
	return variables{
		"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
		"SLIPWAY_TABLE": "slipway", "SLIPWAY_KMS_KEY": "alias/slipway",
		"SLIPWAY_STATE_MACHINES": "arn:aws:states:eu-north-1:123456789012:stateMachine:slipway-",
	}
}

// TestAWorkspaceGetsHalfOfTheStack, unless the operator says otherwise.
func TestAWorkspaceGetsHalfOfTheStack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		streams, rate, set                string
		wantStreams, wantThread, wantRate int64
	}{
		{"1000", "500", "", 500, 250, 250},
		{"10", "100", "", 5, 2, 50},
		{"1", "1", "", 1, 1, 1},
		{"100000", "100000", "", 5000, 2000, 2000}, // the defaults of quotas are lower
		{"10", "500", "streams_at_once=9,requests_per_second=450", 9, 2, 450},
		{"", "", "", 5000, 2000, 2000},
	} {
		v := complete()
		v["SLIPWAY_STREAM_CAPACITY"], v["SLIPWAY_THROTTLE_RATE"], v["SLIPWAY_QUOTAS"] = c.streams, c.rate, c.set
		env, err := stack.ReadEnvironment(v.get)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		streams, thread, rate := env.Quotas.Of(quota.Streams), env.Quotas.Of(quota.ThreadStreams), env.Quotas.Of(quota.Requests)
		if streams != c.wantStreams || thread != c.wantThread || rate != c.wantRate {
			t.Errorf("%+v: got %d, %d, %d", c, streams, thread, rate)
		}
	}
	for _, name := range []string{"SLIPWAY_STREAM_CAPACITY", "SLIPWAY_THROTTLE_RATE"} {
		for _, bad := range []string{"0", "-1", "many"} {
			v := complete()
			v[name] = bad
			if _, err := stack.ReadEnvironment(v.get); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%s: %v", name, bad, err)
			}
		}
	}
}

// TestAWorkspaceGetsHalfOfTheReleases that a load balancer can have.
func TestAWorkspaceGetsHalfOfTheReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		compute, set string
		want         int64
	}{{"ecs", "", 25}, {"ecs", "deployments=49", 49}, {"express", "", 1000}} {
		v := complete()
		v["SLIPWAY_COMPUTE"], v["SLIPWAY_QUOTAS"] = c.compute, c.set
		env, err := stack.ReadEnvironment(v.get)
		if err != nil || env.Quotas.Of(quota.Deployments) != c.want {
			t.Errorf("%+v: got %d (%v)", c, env.Quotas.Of(quota.Deployments), err)
		}
	}
}

var everything = []stack.Need{stack.NeedTable, stack.NeedEngine, stack.NeedKey}

// TestWhatIsMissingIsNamed removes each variable, and then all variables.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if _, err := stack.Open(complete().get, log, everything...); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range complete() {
		v := complete()
		delete(v, name)
		_, err := stack.Open(v.get, log, everything...)
		if optional := name == "AWS_SESSION_TOKEN"; optional != (err == nil) || (err != nil && !strings.HasSuffix(err.Error(), ": "+name)) {
			t.Errorf("without %s: %v", name, err)
		}
		if err != nil {
			names = append(names, name)
		}
	}
	_, err := stack.Open(variables{}.get, log, append(everything, stack.NeedTable)...)
	if err == nil {
		t.Fatal("it opens without anything")
	}
	_, list, _ := strings.Cut(err.Error(), ": ")
	got := strings.Split(list, ", ")
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		t.Errorf("got %v, want %v", got, names)
	}
	if _, err := stack.Open(complete().get, log); err != nil {
		t.Error(err)
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	env, err := stack.ReadEnvironment(variables{"A": " a, b,,", "B": ""}.get)
	if got := env.List("A"); err != nil || !slices.Equal(got, []string{"a", "b"}) || env.List("B") != nil {
		t.Errorf("got %q, %q, %v", got, env.List("B"), err)
	}
}

// TestOnlyTheWebhookFunctionSendsToPrivateAddresses: where private addresses are permitted on AWS,
// the context of other functions stays as it is, so that they start workflows.
func TestOnlyTheWebhookFunctionSendsToPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		private, loopback string
		sends             bool
	}{{"", "", true}, {"false", "", true}, {"true", "", false}, {"10.1.0.0/16", "", false}, {"true", "true", true}} {
		v := complete()
		v["SLIPWAY_PRIVATE_ADDRESSES"], v["SLIPWAY_LOOPBACK_ADDRESSES"] = c.private, c.loopback
		s, err := stack.Open(v.get, slog.New(slog.DiscardHandler), everything...)
		check.Must(t, err)
		ctx, sent := s.Sending(t.Context())
		sent()
		if sends := ctx != t.Context(); sends != c.sends {
			t.Errorf("with private addresses %q, and %q on one machine, it sends: %t", c.private, c.loopback, sends)
		}
	}
}

// TestClientsOfACdnHaveTheirOwnAddresses checks that handlers see the address that the CDN names,
// and that no other client can name one.
func TestClientsOfACdnHaveTheirOwnAddresses(t *testing.T) {
	t.Parallel()
	v := complete()
	v["SLIPWAY_CDN_NETWORKS"], v["SLIPWAY_CLIENT_ADDRESS_HEADER"] = "192.0.2.0/24, 198.51.100.7/32", "CF-Connecting-IP"
	s, err := stack.Open(v.get, slog.New(slog.DiscardHandler), everything...)
	check.Must(t, err)
	seen := ""
	mux := s.Mux()
	mux.Handle("/address", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.RemoteAddr }))
	for sender, want := range map[string]string{"198.51.100.7:0": "203.0.113.5:0", "198.51.100.8:0": "198.51.100.8:0"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/address", nil)
		r.RemoteAddr = sender
		r.Header.Set("CF-Connecting-IP", "203.0.113.5")
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if seen != want {
			t.Errorf("a request from %s has the address %s, want %s", sender, seen, want)
		}
	}
	v["SLIPWAY_CDN_NETWORKS"] = "192.0.2.7"
	if _, err := stack.Open(v.get, slog.New(slog.DiscardHandler), everything...); err == nil {
		t.Error("it takes what the web ACL does not take: an address that is no network")
	}
}

// service is the other end of the SDK's clients: it gives the answers of a test and records the
// requests.
type service struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []string
	tokens []string
	broken bool
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.asked = append(s.asked, operation)
	s.tokens = append(s.tokens, r.Header.Get("X-Amz-Security-Token"))
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("Connection", "close")
	switch {
	case s.broken && operation == "GenerateDataKey":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type": "DisabledException", "message": "the key is disabled"}`)
	case operation == "GenerateDataKey":
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), `"slipway":"data key"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		key := base64.StdEncoding.EncodeToString(make([]byte, 32))
		fmt.Fprintf(w, `{"CiphertextBlob": %q, "Plaintext": %q, "KeyId": "key"}`, key, key)
	default:
		fmt.Fprint(w, `{}`) // DynamoDB: there is no item; Step Functions: it is done
	}
}

// count returns how often an operation was called.
func (s *service) count(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, asked := range s.asked {
		if asked == operation {
			n++
		}
	}
	return n
}

func (s *service) breaks(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// open opens a stack whose services are at the address of the test.
func open(t *testing.T, s *service, extra variables) *stack.Stack {
	t.Helper()
	v := complete()
	v["AWS_ENDPOINT_URL"] = s.URL
	maps.Copy(v, extra)
	opened, err := stack.Open(v.get, slog.New(slog.DiscardHandler), everything...)
	check.Must(t, err)
	return opened
}

// TestTheKeyIsReadOnFirstUse seals, with KMS broken at first: the next request tries again, and
// later requests send nothing to KMS.
func TestTheKeyIsReadOnFirstUse(t *testing.T) {
	t.Parallel()
	service := newService(t)
	s := open(t, service, nil)
	sealer, bound := s.Sealer(), secret.Bound{Workspace: "w", Resource: "r"}
	_ = s.Deployments()
	if len(service.asked) > 0 {
		t.Errorf("asked for %v before anything needed it", service.asked)
	}
	service.breaks(true)
	if _, err := sealer.Seal(t.Context(), bound, []byte("text")); err == nil || !strings.Contains(err.Error(), "the key is disabled") {
		t.Errorf("sealed without a key: %v", err)
	}
	if _, err := sealer.Open(t.Context(), bound, nil); err == nil {
		t.Error("opened without a key")
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Header.Set(auth.HeaderKey, "slw_unknown")
	if _, err := s.APIKeys().Key(request); err == nil || !strings.Contains(err.Error(), "the key is disabled") {
		t.Errorf("got %v", err)
	}
	service.breaks(false)
	sealed, err := sealer.Seal(t.Context(), bound, []byte("text"))
	check.Must(t, err)
	if plain, err := sealer.Open(t.Context(), bound, sealed); err != nil || string(plain) != "text" {
		t.Errorf("got %q, %v", plain, err)
	}
	if _, err := s.APIKeys().Key(request); err == nil || err.Error() != "The API key is not valid." {
		t.Errorf("got %v", err)
	}
	if n := service.count("GenerateDataKey"); n != 4 {
		t.Errorf("KMS was asked %d times, want 3 while it was broken and 1 after", n)
	}
	if service.tokens[0] != "session" {
		t.Errorf("signed with the session token %q", service.tokens[0])
	}
}

// TestEachAdapterIsMadeOnce compares the adapters that two callers get.
func TestEachAdapterIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := open(t, newService(t), nil)
	all := func() []any { return []any{s.Table(), s.Engine(), s.Runs(), s.Threads(), s.Deployments()} }
	if first, second := all(), all(); !slices.Equal(first, second) {
		t.Errorf("got %v, then %v", first, second)
	}
}

// TestWhatCannotBeHadIsRefused asks each kind of place for agents for more than one container.
func TestWhatCannotBeHadIsRefused(t *testing.T) {
	t.Parallel()
	image, listener := "registry.test/agent:1", id.New(time.Now())
	request := deployment.NewDeployment{
		Workspace: id.New(time.Now()), Name: "weather", Source: revision.ExternalDocker, RevisionConfig: revision.Config{ImageURI: &image},
		SourceConfig: deployment.SourceConfig{ResourceSpec: json.RawMessage(`{"sidecars":[{"name":"s","image":"i"}]}`)}, ValidateOnly: true,
	}
	const refused = "source_config.resource_spec.sidecars cannot be had on ECS"
	service := newService(t)
	if _, err := open(t, service, nil).Deployments().Create(t.Context(), request); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), refused) {
		t.Errorf("on ECS: got %v", err)
	}
	if _, err := open(t, service, variables{"SLIPWAY_AGENT_HOST": "http://127.0.0.1:1"}).Deployments().Create(t.Context(), request); err != nil {
		t.Errorf("on a machine: got %v", err)
	}
	request.SourceConfig.ListenerID = &listener
	if _, err := open(t, service, nil).Deployments().Create(t.Context(), request); err == nil || strings.Contains(err.Error(), refused) {
		t.Errorf("at a listener: got %v", err)
	}
}

// TestEndpoints sends each service's requests to the address of its own variable, else to the
// address of the variable for all services.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	all, own := newService(t), newService(t)
	s := open(t, all, variables{"AWS_ENDPOINT_URL_SFN": own.URL, "AWS_ENDPOINT_URL_DYNAMODB": ""})
	if err := s.Engine().Start(t.Context(), workflow.Run, "name", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if _, err := s.Key(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if !slices.Equal(own.asked, []string{"StartExecution"}) {
		t.Errorf("Step Functions were asked for %v", own.asked)
	}
	if all.count("GenerateDataKey") != 1 || all.count("Query") == 0 || all.count("StartExecution") != 0 {
		t.Errorf("the others were asked for %v", all.asked)
	}
}
