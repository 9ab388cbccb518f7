package webhook_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// TestAMessageByTheRulesOfItsDeployment sends messages with the deployment's present headers and
// fields. An address that the present rules forbid is not called.
func TestAMessageByTheRulesOfItsDeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	own, refusal := webhook.Own{Rules: &build.Webhooks{MaxLength: 4096, Fields: []string{"status"}}, Header: map[string]string{"X-Key": "planted"}}, error(nil)
	f.config.Own = func(_ context.Context, asked, deployment string) (webhook.Own, error) {
		if asked != workspace || deployment != "d" {
			t.Errorf("asked for %s of %s", deployment, asked)
		}
		return own, refusal
	}
	f.Store = webhook.NewStore(f.config)
	address := f.receiver.URL
	send := func() webhook.Delivery {
		t.Helper()
		o, ref := f.Send(webhook.Message{Workspace: workspace, Deployment: "d", Log: "0197a000-0000-7000-8000-0000000000a1", URL: address, Type: "run", Body: []byte(`{"status":"success","values":{"a":1}}`)})
		f.must(record.Commit(t.Context(), f.table, o))
		f.drive(f.engine.take()[0])
		d, err := f.GetDelivery(t.Context(), ref)
		f.must(err)
		return d
	}
	d := send()
	got := f.receiver.all()
	if len(got) != 1 || got[0].header.Get("X-Key") != "planted" || string(got[0].body) != `{"status":"success"}` || d.Status != webhook.Succeeded {
		t.Fatalf("got %v, %+v", got, d)
	}
	if strings.Contains(fmt.Sprintf("%+v", d), "planted") {
		t.Errorf("the delivery holds the header: %+v", d)
	}
	for rule, rules := range map[string]build.Webhooks{"allowed_ports": {MaxLength: 4096, Ports: []int{443}}, "disable_loopback": {MaxLength: 4096, NoLoopback: true}, "disable_private_ips": {MaxLength: 4096, NoPrivate: true}} {
		own.Rules = &rules
		if d := send(); d.Status != webhook.Failed || !strings.Contains(d.Failure, "webhooks.url."+rule) || strings.Contains(d.Failure, "127.0.0.1") {
			t.Errorf("by the rule %s it is %s: %s", rule, d.Status, d.Failure)
		}
	}
	// A name tells nothing about its address: here the connection is refused.
	address = strings.Replace(address, "127.0.0.1", "LOCALHOST", 1)
	own.Rules = &build.Webhooks{MaxLength: 4096, NoPrivate: true}
	if d := send(); d.Status != webhook.Pending || d.Failure != "The address is not a public one." {
		t.Errorf("without private addresses it is %s: %s", d.Status, d.Failure)
	}
	refusal = &webhook.Refusal{Why: "A header has no value."}
	if d := send(); d.Status != webhook.Failed || d.Failure != "A header has no value." || d.Attempts != 1 {
		t.Errorf("without a header it is %+v", d)
	}
	if calls := len(f.receiver.all()); calls != 0 {
		t.Errorf("the receiver was called %d times more", calls)
	}
}
