package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	roles "github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// keys is an auth.Authenticator that counts its calls.
type keys struct {
	asked int
	known map[string]string
	// abroad is an Authorization of another workspace.
	abroad string
	err    error
}

func (k *keys) Key(r *http.Request) (roles.Principal, error) {
	k.asked++
	if k.err != nil {
		return roles.Principal{}, k.err
	}
	if found := k.known[r.Header.Get(auth.HeaderKey)]; found != "" {
		return roles.Principal{Workspace: found}, nil
	}
	if k.abroad != "" && r.Header.Get(auth.HeaderBearer) == k.abroad {
		return roles.Principal{}, fault.New(fault.Forbidden, "The token is not for this workspace.")
	}
	return roles.Principal{}, fault.New(fault.Unauthorized, "The API key is not valid.")
}

// question is the question of API Gateway, with headers and for a route.
func question(t *testing.T, headers, resource string) events.APIGatewayCustomAuthorizerRequestTypeRequest {
	t.Helper()
	var e events.APIGatewayCustomAuthorizerRequestTypeRequest
	decode(t, []byte(`{
		"type": "REQUEST", "methodArn": "arn:aws:execute-api:eu-north-1:123456789012:abcdef/v/GET/v2/deployments",
		"resource": "`+resource+`", "path": "/d/misleading", "httpMethod": "GET", "headers": null,
		"multiValueHeaders": `+headers+`, "requestContext": {"stage": "v"}
	}`), &e)
	return e
}

const (
	controlPlane = "/v2/deployments/{deployment_id}"
	agentServer  = "/d/{deployment_id}/threads"
)

// admitted is an AgentTokens that knows one token of one deployment.
type admitted struct{ deployment, token string }

func (a admitted) Admit(_ context.Context, ref deployment.Ref, token string) (bool, error) {
	return ref.Workspace == workspace && ref.Deployment == a.deployment && token == a.token, nil
}

// TestAttackAnAgentIsOneAtItsOwnServerAlone: its invoke token makes it its deployment's agent,
// and has no value elsewhere.
func TestAttackAnAgentIsOneAtItsOwnServerAlone(t *testing.T) {
	t.Parallel()
	const own = "0197a000-0000-7000-8000-00000000000a"
	authorizer := lambdahost.Authorizer(&keys{}, admitted{own, "invoke"}, &deployments{}, time.Now, slog.New(slog.DiscardHandler))
	for name, c := range map[string]struct{ headers, resource, deployment, want string }{
		"own server":         {`{"X-Api-Key": ["invoke"], "X-Tenant-Id": ["` + workspace + `"]}`, agentServer, own, "agent"},
		"an id in capitals":  {`{"X-Api-Key": ["invoke"], "X-Tenant-Id": ["` + workspace + `"]}`, agentServer, strings.ToUpper(own), "agent"},
		"as a bearer":        {`{"Authorization": ["Bearer invoke"], "X-Tenant-Id": ["` + workspace + `"]}`, agentServer, own, "agent"},
		"another deployment": {`{"X-Api-Key": ["invoke"], "X-Tenant-Id": ["` + workspace + `"]}`, agentServer, "0197a000-0000-7000-8000-00000000000b", ""},
		"another workspace":  {`{"X-Api-Key": ["invoke"], "X-Tenant-Id": ["` + stranger + `"]}`, agentServer, own, ""},
		"no workspace":       {`{"X-Api-Key": ["invoke"]}`, agentServer, own, ""},
		"the control plane":  {`{"X-Api-Key": ["invoke"], "X-Tenant-Id": ["` + workspace + `"]}`, controlPlane, own, ""},
	} {
		asked := question(t, c.headers, c.resource)
		asked.PathParameters = map[string]string{"deployment_id": c.deployment}
		answer, err := authorizer(invocation(t, time.Minute), asked)
		role, _ := answer.Context["role"].(string)
		if role != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got the role %q and %v, want %q", name, role, err, c.want)
		}
	}
}

func TestAuthorizer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers, resource string
		// want is Allow, Deny, or the text of an error.
		want string
	}{
		"no credentials":                {`{}`, controlPlane, "Unauthorized"},
		"an empty key":                  {`{"X-Api-Key": [""]}`, controlPlane, "Unauthorized"},
		"a bad key":                     {`{"X-Api-Key": ["bad"]}`, controlPlane, "Unauthorized"},
		"a key":                         {`{"X-Api-Key": ["good"]}`, controlPlane, "Allow"},
		"small letters":                 {`{"x-api-key": ["good"], "x-tenant-id": ["` + workspace + `"]}`, controlPlane, "Allow"},
		"the key's tenant":              {`{"X-Api-Key": ["good"], "X-Tenant-Id": ["` + workspace + `"]}`, controlPlane, "Allow"},
		"another tenant":                {`{"X-Api-Key": ["good"], "X-Tenant-Id": ["` + stranger + `"]}`, controlPlane, "Deny"},
		"two keys":                      {`{"X-Api-Key": ["good", "bad"]}`, controlPlane, "Unauthorized"},
		"two tenants":                   {`{"X-Api-Key": ["good"], "X-Tenant-Id": ["` + workspace + `", "` + stranger + `"]}`, controlPlane, "Unauthorized"},
		"the same header in two ways":   {`{"X-Api-Key": ["good"], "x-api-key": ["good"]}`, agentServer, "Unauthorized"},
		"an agent server, no key":       {`{}`, agentServer, "Unauthorized"},
		"an agent server, a bad key":    {`{"X-Api-Key": ["bad"]}`, agentServer, "Unauthorized"},
		"an agent server":               {`{"X-Api-Key": ["good"]}`, agentServer, "Allow"},
		"an agent server, other tenant": {`{"X-Api-Key": ["good"], "X-Tenant-Id": ["` + stranger + `"]}`, agentServer, "Allow"},
		"a route of the same letters":   {`{"X-Api-Key": ["good"], "X-Tenant-Id": ["` + stranger + `"]}`, "/api-host/d/", "Deny"},
	} {
		log, _ := newLog()
		answer, err := lambdahost.Authorizer(&keys{known: map[string]string{"good": workspace}}, nil, &deployments{}, time.Now, log)(
			invocation(t, time.Minute), question(t, c.headers, c.resource))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = answer.PolicyDocument.Statement[0].Effect
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if in := answer.Context[`workspace`] != nil; in != (c.want == "Allow") {
			t.Errorf("%s: the context is %v", name, answer.Context)
		}
	}
}

// TestThePolicy compares with the JSON that API Gateway requires, also for headers that came
// only once.
func TestThePolicy(t *testing.T) {
	t.Parallel()
	e := question(t, "null", controlPlane)
	e.Headers = map[string]string{"x-api-key": "good"}
	log, _ := newLog()
	answer, err := lambdahost.Authorizer(&keys{known: map[string]string{"good": workspace}}, nil, &deployments{}, time.Now, log)(invocation(t, time.Minute), e)
	check.Must(t, err)
	text, err := json.Marshal(answer)
	check.Must(t, err)
	var got, want any
	decode(t, text, &got)
	decode(t, []byte(`{
		"principalId": "`+workspace+`", "context": {"workspace": "`+workspace+`", "role": "", "key_id": "", "subject": ""},
		"policyDocument": {"Version": "2012-10-17", "Statement": [{
			"Action": ["execute-api:Invoke"], "Effect": "Allow", "Resource": ["arn:aws:execute-api:eu-north-1:123456789012:abcdef/v/*"]
		}]}
	}`), &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFaultsAreNotAnswers checks that a fault of the platform admits no caller, is not a 401
// either, and is written to the log alone.
func TestFaultsAreNotAnswers(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{controlPlane, agentServer} {
		log, logged := newLog()
		_, err := lambdahost.Authorizer(&keys{err: errors.New("secret-cause")}, nil, &deployments{}, time.Now, log)(
			invocation(t, time.Minute), question(t, `{"X-Api-Key": ["secret-key"]}`, resource))
		if err == nil || err.Error() == "Unauthorized" || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
		wantLine(t, logged, `"level":"ERROR"`, "secret-cause", invocationID)
		if strings.Contains(logged.String(), "secret-key") {
			t.Error("the log has the key")
		}
	}
}

// TestNobodyIsAskedForNothing counts the calls: a request without a key makes no call.
func TestNobodyIsAskedForNothing(t *testing.T) {
	t.Parallel()
	store := &keys{err: errors.New("away")}
	log, _ := newLog()
	_, err := lambdahost.Authorizer(store, nil, &deployments{}, time.Now, log)(invocation(t, time.Minute), question(t, `{"X-Tenant-Id": ["`+workspace+`"]}`, agentServer))
	if store.asked > 0 || err == nil || err.Error() != "Unauthorized" {
		t.Errorf("asked %d times, got %v", store.asked, err)
	}
}

// TestWhatIsRemembered counts how often the keys are checked: once a minute for a good key, on
// all routes together, each time for all other credentials.
func TestWhatIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := &keys{known: map[string]string{"good": workspace, "other": stranger}}
	log, _ := newLog()
	authorizer := lambdahost.Authorizer(store, nil, &deployments{}, func() time.Time { return now }, log)
	for i, c := range []struct {
		after            time.Duration
		key, resource    string
		asked            int
		isRevoked, isBad bool
	}{
		{0, "good", controlPlane, 1, false, false},
		{59 * time.Second, "good", controlPlane, 1, false, false},
		{0, "other", controlPlane, 2, false, false},
		{0, "other", agentServer, 2, false, false},
		{0, "good", agentServer, 2, true, false}, // revoked, not yet noticed
		{0, "good", controlPlane, 2, true, false},
		{time.Second, "good", agentServer, 3, true, true},
		{0, "good", controlPlane, 4, true, true},
		{0, "good", agentServer, 5, false, false},
	} {
		now = now.Add(c.after)
		store.known["good"] = workspace
		if c.isRevoked {
			delete(store.known, "good")
		}
		answer, err := authorizer(invocation(t, time.Minute), question(t, `{"X-Api-Key": ["`+c.key+`"]}`, c.resource))
		if (err != nil) != c.isBad || store.asked != c.asked {
			t.Errorf("%d: asked %d times, want %d; got %v", i, store.asked, c.asked, err)
		}
		if want := map[string]string{"good": workspace, "other": stranger}[c.key]; err == nil && answer.PrincipalID != want {
			t.Errorf("%d: got %s, want %s", i, answer.PrincipalID, want)
		}
	}
}

// TestPreflightsNeedNoCredentials: only OPTIONS passes without a caller, on all routes.
func TestPreflightsNeedNoCredentials(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{agentServer, controlPlane} {
		for method, want := range map[string]bool{"OPTIONS": true, "GET": false, "options": false} {
			log, _ := newLog()
			asked := question(t, `{"Origin": ["https://a.test"], "Access-Control-Request-Method": ["POST"]}`, resource)
			asked.HTTPMethod, asked.PathParameters = method, map[string]string{"deployment_id": withNone}
			deployments := kinds()
			answer, err := lambdahost.Authorizer(&keys{}, nil, deployments, time.Now, log)(invocation(t, time.Minute), asked)
			if (err == nil) != want || len(answer.Context) > 0 || (want && deployments.asked > 0) {
				t.Errorf("%s %s: got %+v, %v", method, resource, answer, err)
			}
		}
	}
}
