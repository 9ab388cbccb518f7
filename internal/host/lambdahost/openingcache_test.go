package lambdahost_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// deployments is a lambdahost.Deployments that counts its calls.
type deployments struct {
	asked int
	known map[string]deployment.Deployment
	err   error
}

func (d *deployments) HeadWithID(_ context.Context, id string) (deployment.Deployment, error) {
	d.asked++
	if d.err != nil {
		return deployment.Deployment{}, d.err
	}
	if found, ok := d.known[id]; ok {
		return found, nil
	}
	return deployment.Deployment{}, deployment.NotFound(deployment.Ref{Deployment: id})
}

const (
	withAuth = "0197a000-0000-7000-8000-0000000000d1"
	withHTTP = "0197a000-0000-7000-8000-0000000000d2"
	withNone = "0197a000-0000-7000-8000-0000000000d3"
	ofNobody = "0197a000-0000-7000-8000-0000000000d4"
)

func kinds() *deployments {
	open := deployment.Deployment{}
	open.Auth = true
	routes := deployment.Deployment{}
	routes.Settings.HTTP = &build.HTTP{App: "app.py:app"}
	return &deployments{known: map[string]deployment.Deployment{withAuth: open, withHTTP: routes, withNone: {}}}
}

// TestAttackStrangersAtTheAuthorizer: strangers pass only at an agent server whose deployment
// decides about them, and then as nobody. All other strangers get the same answer, whether
// there is such a deployment or not.
func TestAttackStrangersAtTheAuthorizer(t *testing.T) {
	t.Parallel()
	const (
		nobody   = "Allow, nobody"
		refused  = "Unauthorized"
		known    = "Allow, " + workspace
		forged   = `{"Authorization": ["Bearer x"], "Workspace": ["` + workspace + `"], "Role": ["admin"], "X-Slipway-Workspace": ["` + workspace + `"]}`
		bad      = `{"X-Api-Key": ["bad"]}`
		noTenant = `{"Authorization": ["Bearer abroad"]}`
	)
	for name, c := range map[string]struct{ headers, resource, deployment, want string }{
		"own authentication, nothing":             {`{}`, agentServer, withAuth, nobody},
		"own authentication, a bad key":           {bad, agentServer, withAuth, nobody},
		"own authentication, a cookie":            {`{"Cookie": ["s=1"]}`, agentServer, withAuth, nobody},
		"own authentication, forged claims":       {forged, agentServer, withAuth, nobody},
		"own authentication, two keys":            {`{"X-Api-Key": ["good", "bad"]}`, agentServer, withAuth, nobody},
		"own authentication, a token from abroad": {noTenant, agentServer, withAuth, nobody},
		"own authentication, an id in capitals":   {bad, agentServer, strings.ToUpper(withAuth), nobody},
		"own authentication, a key":               {`{"X-Api-Key": ["good"]}`, agentServer, withAuth, known},
		"own routes, nothing":                     {`{}`, agentServer, withHTTP, nobody},
		"neither, nothing":                        {`{}`, agentServer, withNone, refused},
		"neither, a bad key":                      {bad, agentServer, withNone, refused},
		"neither, forged claims":                  {forged, agentServer, withNone, refused},
		"neither, two keys":                       {`{"X-Api-Key": ["good", "good"]}`, agentServer, withNone, refused},
		"neither, a token from abroad":            {noTenant, agentServer, withNone, "Deny"},
		"neither, a key":                          {`{"X-Api-Key": ["good"]}`, agentServer, withNone, known},
		"no deployment, nothing":                  {`{}`, agentServer, ofNobody, refused},
		"no deployment, a bad key":                {bad, agentServer, ofNobody, refused},
		"no deployment, two keys":                 {`{"X-Api-Key": ["good", "good"]}`, agentServer, ofNobody, refused},
		"no deployment, a token from abroad":      {noTenant, agentServer, ofNobody, "Deny"},
		"no deployment, a key":                    {`{"X-Api-Key": ["good"]}`, agentServer, ofNobody, known},
		"an id with an escape":                    {bad, agentServer, "%30" + withAuth[1:], refused},
		"no id":                                   {bad, agentServer, "x", refused},
		"the control plane, nothing":              {`{}`, controlPlane, withAuth, refused},
		"the control plane, a bad key":            {bad, controlPlane, withAuth, refused},
		"the control plane, from abroad":          {noTenant, controlPlane, withAuth, "Deny"},
		"the control plane, two keys":             {`{"X-Api-Key": ["good", "good"]}`, controlPlane, withAuth, refused},
	} {
		log, _ := newLog()
		asked := question(t, c.headers, c.resource)
		asked.PathParameters = map[string]string{"deployment_id": c.deployment}
		answer, err := lambdahost.Authorizer(&keys{known: map[string]string{"good": workspace}, abroad: "Bearer abroad"}, nil, kinds(), time.Now, log)(
			invocation(t, time.Minute), asked)
		got := fmt.Sprint(err)
		if err == nil {
			got = answer.PolicyDocument.Statement[0].Effect
		}
		switch {
		case got != "Allow":
		case len(answer.Context) == 0:
			got = nobody
		default:
			got += fmt.Sprint(", ", answer.Context["workspace"])
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if got != known && len(answer.Context) > 0 {
			t.Errorf("%s: the context is %v", name, answer.Context)
		}
	}
}

// TestAttackReadsByStrangers counts the reads that strangers cause: a deployment is looked up once
// a minute if it is open, and once in two seconds if it is not.
func TestAttackReadsByStrangers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := kinds()
	log, _ := newLog()
	authorizer := lambdahost.Authorizer(&keys{known: map[string]string{"good": workspace}}, nil, store, func() time.Time { return now }, log)
	for i, c := range []struct {
		after           time.Duration
		key, deployment string
		asked           int
		isIn            bool
	}{
		{0, "bad", withAuth, 1, true},
		{59 * time.Second, "worse", withAuth, 1, true},
		{time.Second, "bad", withAuth, 2, true},
		{0, "good", withNone, 2, true}, // the platform knows the key
		{0, "bad", withNone, 3, false},
		{0, "worse", withNone, 3, false},
		{1999 * time.Millisecond, "bad", strings.ToUpper(withNone), 3, false},
		{time.Millisecond, "bad", withNone, 4, false},
		{0, "bad", ofNobody, 5, false},
		{time.Second, "bad", ofNobody, 5, false},
		{time.Second, "bad", ofNobody, 6, false},
		{0, "bad", "not-an-id", 6, false},
	} {
		now = now.Add(c.after)
		asked := question(t, `{"X-Api-Key": ["`+c.key+`"]}`, agentServer)
		asked.PathParameters = map[string]string{"deployment_id": c.deployment}
		_, err := authorizer(invocation(t, time.Minute), asked)
		if store.asked != c.asked || (err == nil) != c.isIn {
			t.Errorf("%d: looked %d times, want %d; got %v", i, store.asked, c.asked, err)
		}
	}
}

// TestADeploymentThatCannotBeRead checks that a fault of the table admits no stranger, is not a
// 401 either, and is forgotten.
func TestADeploymentThatCannotBeRead(t *testing.T) {
	t.Parallel()
	store := kinds()
	store.err = errors.New("secret-cause")
	log, logged := newLog()
	authorizer := lambdahost.Authorizer(&keys{}, nil, store, time.Now, log)
	asked := question(t, `{}`, agentServer)
	asked.PathParameters = map[string]string{"deployment_id": withAuth}
	if _, err := authorizer(invocation(t, time.Minute), asked); err == nil || err.Error() == "Unauthorized" || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	wantLine(t, logged, `"level":"ERROR"`, "secret-cause", invocationID)
	store.err = nil
	if _, err := authorizer(invocation(t, time.Minute), asked); err != nil {
		t.Errorf("got %v when the table is back", err)
	}
}
