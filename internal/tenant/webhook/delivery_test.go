package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// TestAnEventIsSentSigned compares the whole request.
func TestAnEventIsSentSigned(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, secret := f.create()
	e := f.tell("DEPLOYED")
	started := f.engine.take()
	if len(started) != 1 || strings.Contains(string(started[0]), secret) || strings.Contains(string(started[0]), f.receiver.URL) {
		t.Fatalf("started %s", started)
	}
	if pauses := f.drive(started[0]); len(pauses) != 0 {
		t.Errorf("it waited for %v", pauses)
	}
	got := f.receiver.all()
	if len(got) != 1 {
		t.Fatalf("%d requests came", len(got))
	}
	want := `{"id":"` + e.ID + `","type":"revision.deployed","timestamp":"` + e.Payload().Timestamp + `","data":{"compute_id":null,"deployment_id":"0197a000-0000-7000-8000-0000000000d1",` +
		`"deployment_name":"weather","listener_id":null,"revision_id":"0197a000-0000-7000-8000-0000000000e1","status":"DEPLOYED","status_message":null,"status_reason":null}}`
	if string(got[0].body) != want {
		t.Errorf("got %s\nwant %s", got[0].body, want)
	}
	if got[0].header.Get("Webhook-Id") != e.ID || got[0].header.Get("Content-Type") != "application/json" ||
		got[0].header.Get("Webhook-Timestamp") != strconv.FormatInt(f.clock.Now().Unix(), 10) {
		t.Errorf("got headers %v", got[0].header)
	}
	if err := verify(t, secret, got[0]); err != nil {
		t.Error(err)
	}
	_, other := f.create()
	if err := verify(t, other, got[0]); err == nil {
		t.Error("the signature is good for another secret")
	}
	d := f.deliveries(w.Ref)
	if len(d) != 1 || d[0].Status != webhook.Succeeded || d[0].Attempts != 1 || d[0].Response != http.StatusNoContent || d[0].Failure != "" || !d[0].Due.IsZero() {
		t.Errorf("got %+v", d)
	}
	// The step may be repeated.
	if pauses := f.drive(started[0]); len(pauses) != 0 || len(f.receiver.all()) != 0 {
		t.Error("what had succeeded was sent again")
	}
}

// TestOnlyWhatIsWantedIsSent: only events of the wanted types, and nothing while a webhook is
// disabled.
func TestOnlyWhatIsWantedIsSent(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	all, _ := f.create()
	failures, _ := f.create(event.OfStatus("BUILD_FAILED"), event.OfStatus("DEPLOY_FAILED"))
	disabled, _ := f.create()
	_, err := f.Patch(t.Context(), disabled.Ref, webhook.Patch{Enabled: new(bool)})
	f.must(err)
	f.tell("DEPLOYED")
	f.tell("BUILD_FAILED")
	for ref, want := range map[webhook.Ref]int{all.Ref: 2, failures.Ref: 1, disabled.Ref: 0} {
		if got := f.deliveries(ref); len(got) != want {
			t.Errorf("%d deliveries, want %d", len(got), want)
		}
	}
}

// TestWhatFailsIsSentAgain until it succeeds, with growing pauses, under the same id, with a
// signature for the time of each attempt.
func TestWhatFailsIsSentAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, secret := f.create()
	f.receiver.answer(500, 302, 404, 429)
	f.tell("DEPLOYED")
	input := f.engine.take()[0]
	due := f.attempt(input)
	if again := f.attempt(input); !again.Equal(due) || len(f.deliveries(w.Ref)) != 1 || f.deliveries(w.Ref)[0].Attempts != 1 {
		t.Errorf("called before %v, it says %v", due, again)
	}
	pauses := []time.Duration{due.Sub(f.clock.Now())}
	f.moveTo(due)
	rest, executions := f.deliver(w.Ref, input)
	pauses = append(pauses, rest...)
	if executions != 3 {
		t.Errorf("%d executions, want one until each of the two long pauses and one that delivers", executions)
	}
	want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour}
	if len(pauses) != len(want) {
		t.Fatalf("it waited for %v, want about %v", pauses, want)
	}
	for i, pause := range pauses {
		if pause < want[i]*4/5 || pause > want[i]*6/5 {
			t.Errorf("pause %d is %v, want about %v", i, pause, want[i])
		}
	}
	got := f.receiver.all()
	ids, times := map[string]bool{}, map[string]bool{}
	for _, r := range got {
		ids[r.header.Get("Webhook-Id")], times[r.header.Get("Webhook-Timestamp")] = true, true
		if err := verify(t, secret, r); err != nil || r.path != "/" {
			t.Errorf("a request to %s: %v", r.path, err)
		}
	}
	if len(got) != 5 || len(ids) != 1 || len(times) != 5 {
		t.Errorf("%d requests with %d ids at %d times", len(got), len(ids), len(times))
	}
	d := f.deliveries(w.Ref)[0]
	if d.Status != webhook.Succeeded || d.Attempts != 5 || d.Failure != "" {
		t.Errorf("got %+v", d)
	}
	if now, err := f.Get(t.Context(), w.Ref); err != nil || !now.Failing.IsZero() {
		t.Errorf("after a success it is failing since %v (%v)", now.Failing, err)
	}
}

// TestWhatNeverGetsThroughIsGivenUp after a day, and sent once more when a user replays it.
func TestWhatNeverGetsThroughIsGivenUp(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.receiver.answer(500, 500, 500, 500, 500, 500, 500, 500)
	e := f.tell("DEPLOYED")
	begun := f.clock.Now()
	pauses, _ := f.deliver(w.Ref, f.engine.take()[0])
	if took := f.clock.Now().Sub(begun); len(pauses) != 7 || took < 22*time.Hour || took > 34*time.Hour {
		t.Errorf("it was tried again %d times in %v", len(pauses), took)
	}
	d := f.deliveries(w.Ref)[0]
	if d.Status != webhook.Failed || d.Attempts != 8 || d.Response != 500 || d.Failure != "The answer has status 500." {
		t.Errorf("got %+v", d)
	}
	if now, err := f.Get(t.Context(), w.Ref); err != nil || !now.Enabled || now.Failing.IsZero() {
		t.Errorf("after a day of failures it is %+v (%v)", now, err)
	}
	f.receiver.all()
	replayed, err := f.Replay(t.Context(), w.Ref, d.Delivery)
	f.must(err)
	if replayed.Status != webhook.Pending {
		t.Errorf("got %+v", replayed)
	}
	if _, err := f.Replay(t.Context(), w.Ref, d.Delivery); !fault.Is(err, fault.Conflict) {
		t.Errorf("what is on its way was replayed: %v", err)
	}
	started := f.engine.take()
	if len(started) != 1 || len(f.drive(started[0])) != 0 {
		t.Fatalf("started %s", started)
	}
	if got := f.receiver.all(); len(got) != 1 || got[0].header.Get("Webhook-Id") != e.ID {
		t.Errorf("got %v", got)
	}
	if d := f.deliveries(w.Ref); len(d) != 1 || d[0].Status != webhook.Succeeded || d[0].Attempts != 1 {
		t.Errorf("got %+v", d)
	}
	if _, err := f.Replay(t.Context(), w.Ref, "0197a000-0000-7000-8000-00000000dead"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
}

// TestFaultsOfTheWayThere: the text of a network error contains no address.
func TestFaultsOfTheWayThere(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hang) })
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	impatient, private := f.config, f.config
	impatient.Timeout = 200 * time.Millisecond
	private.Private = nil
	for name, c := range map[string]struct {
		config webhook.Config
		url    string
		want   string
	}{
		"slow":    {impatient, slow.URL, "There was no answer in time."},
		"closed":  {f.config, closed.URL, "The address cannot be reached."},
		"foreign": {f.config, secure.URL, "The certificate of the address is not valid."},
		"private": {private, f.receiver.URL, "The address is not a public one."},
	} {
		made, err := f.Create(t.Context(), webhook.NewWebhook{Workspace: workspace, URL: c.url + "/?token=open-sesame"})
		f.must(err)
		_, err = f.Test(t.Context(), made.Webhook.Ref)
		f.must(err)
		f.Store = webhook.NewStore(c.config)
		f.attempt(f.engine.take()[0])
		if d := f.deliveries(made.Webhook.Ref)[0]; d.Status != webhook.Pending || d.Failure != c.want || d.Response != 0 {
			t.Errorf("%s: got %+v, want %s", name, d, c.want)
		}
		f.Store = webhook.NewStore(f.config)
	}
	if got := f.receiver.all(); len(got) != 0 {
		t.Errorf("a private address was called: %v", got)
	}
}

// TestAddressesThatAreRefused when they are stored.
func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	config := f.config
	config.Private = nil
	f.Store = webhook.NewStore(config)
	for _, url := range []string{"https://127.0.0.1/", "https://10.0.0.1/x", "https://169.254.169.254/latest", "http://example.com/", "https://u:p@example.com/", "example.com", ""} {
		if _, err := f.Create(t.Context(), webhook.NewWebhook{Workspace: workspace, URL: url}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q was taken: %v", url, err)
		}
		if _, err := f.Patch(t.Context(), w.Ref, webhook.Patch{URL: &url}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q was taken by a PATCH: %v", url, err)
		}
	}
}

// entries are the details of the audit log's entries about webhooks, newest first.
func (f *fixture) entries() []string {
	f.Helper()
	found, _, err := audit.NewStore(f.table, f.clock.Now).List(f.Context(), workspace, audit.Filter{}, record.Window{Limit: 100})
	f.must(err)
	var details []string
	for _, e := range found {
		details = append(details, strings.TrimSpace(string(e.Action)+" "+e.Detail))
	}
	return details
}

// TestWhoIsGoneIsDisabled at once.
func TestWhoIsGoneIsDisabled(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.tell("QUEUED")
	f.tell("DEPLOYED")
	f.receiver.answer(http.StatusGone)
	for _, input := range f.engine.take() {
		f.drive(input)
	}
	now, err := f.Get(t.Context(), w.Ref)
	f.must(err)
	if now.Enabled || now.Reason != webhook.ReasonGone || len(f.receiver.all()) != 1 {
		t.Errorf("got %+v", now)
	}
	for i, want := range []string{"The webhook is disabled.", "The answer has status 410."} {
		if d := f.deliveries(w.Ref)[i]; d.Status != webhook.Failed || d.Failure != want {
			t.Errorf("got %+v, want %s", d, want)
		}
	}
	if diff := cmp.Diff([]string{"update_webhook disabled by the server: GONE", "create_webhook"}, f.entries()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	if _, err := f.Test(t.Context(), w.Ref); !fault.Is(err, fault.Conflict) {
		t.Errorf("a disabled webhook is tested: %v", err)
	}
	if _, err := f.Replay(t.Context(), w.Ref, f.deliveries(w.Ref)[0].Delivery); !fault.Is(err, fault.Conflict) {
		t.Errorf("a disabled webhook is sent something again: %v", err)
	}
	on := true
	if now, err = f.Patch(t.Context(), w.Ref, webhook.Patch{Enabled: &on}); err != nil || !now.Enabled || now.Reason != "" {
		t.Errorf("got %+v (%v)", now, err)
	}
}

// TestWhoFailsForDaysIsDisabled although it gets a new event each day.
func TestWhoFailsForDaysIsDisabled(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	for day := range 6 {
		f.receiver.answer(500, 500, 500, 500, 500, 500, 500, 500)
		f.tell("DEPLOYED")
		f.deliver(w.Ref, f.engine.take()[0])
		now, err := f.Get(t.Context(), w.Ref)
		f.must(err)
		if since := f.clock.Now().Sub(now.Failing); now.Enabled != (since < 5*24*time.Hour) {
			t.Fatalf("on day %d it is %+v, failing for %v", day, now, since)
		}
		if !now.Enabled {
			if now.Reason != webhook.ReasonFailing || f.entries()[0] != "update_webhook disabled by the server: FAILING" {
				t.Errorf("got %+v, %v", now, f.entries())
			}
			return
		}
	}
	t.Error("it was never disabled")
}

// TestASecretIsReplaced with both signing for a day.
func TestASecretIsReplaced(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, old := f.create()
	_, secret, err := f.Rotate(t.Context(), w.Ref)
	f.must(err)
	send := func() received {
		f.tell("DEPLOYED")
		f.drive(f.engine.take()[0])
		return f.receiver.all()[0]
	}
	both := send()
	if errs := errors.Join(verify(t, old, both), verify(t, secret, both)); errs != nil {
		t.Error(errs)
	}
	f.moveTo(f.clock.Now().Add(24 * time.Hour))
	after := send()
	if verify(t, secret, after) != nil || verify(t, old, after) == nil {
		t.Errorf("after a day: %s", after.header.Get("Webhook-Signature"))
	}
}

// TestWhatWasLostIsRescued: a workflow that was never started, a workflow that ended without
// ending its delivery, and a running workflow.
func TestWhatWasLostIsRescued(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.engine.refuses = errors.New("throttled")
	f.tell("QUEUED")
	f.engine.refuses = nil
	f.tell("BUILDING")
	f.tell("DEPLOYED")
	f.engine.take()
	f.engine.known[f.engine.names[0]] = workflow.Aborted
	f.must(f.Rescue(t.Context(), f.clock.Now()))
	if got := f.engine.take(); len(got) != 0 {
		t.Errorf("what is not overdue was started: %s", got)
	}
	f.moveTo(f.clock.Now().Add(3 * time.Minute))
	for range 3 {
		f.must(f.Rescue(t.Context(), f.clock.Now()))
	}
	started := f.engine.take()
	if len(started) != 2 {
		t.Fatalf("started %s, want the one that was not and the one that ended", started)
	}
	for _, input := range started {
		f.drive(input)
	}
	pending := 0
	for _, d := range f.deliveries(w.Ref) {
		if d.Status == webhook.Pending {
			pending++
		}
	}
	if len(f.receiver.all()) != 2 || pending != 1 {
		t.Errorf("%d are pending, want the one that runs", pending)
	}
}

// TestAMessageOfNoWebhook sends a message that reports the end of a run.
func TestAMessageOfNoWebhook(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	body := json.RawMessage(`{"run_id": "r",  "status": "success"}`)
	o, ref := f.Send(webhook.Message{Workspace: workspace, Log: "0197a000-0000-7000-8000-0000000000a1", URL: f.receiver.URL + "/run", Type: "run", Body: body})
	f.must(record.Commit(t.Context(), f.table, o))
	f.receiver.answer(500)
	if pauses := f.drive(f.engine.take()[0]); len(pauses) != 1 {
		t.Errorf("it waited %v", pauses)
	}
	got := f.receiver.all()
	if len(got) != 2 || string(got[1].body) != string(body) || got[1].path != "/run" || got[1].header.Get("Webhook-Signature") != "" || got[1].header.Get("Webhook-Id") == "" {
		t.Errorf("got %v", got)
	}
	if d, err := f.GetDelivery(t.Context(), ref); err != nil || d.Status != webhook.Succeeded || len(d.Message.Body) != 0 || d.Message.URL != "" {
		t.Errorf("got %+v (%v), want nothing of the message kept", d, err)
	}
}

// TestAWorkspaceHasAFewWebhooks and each event is at most one delivery to each webhook.
func TestAWorkspaceHasAFewWebhooks(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	most := int(quota.Limits{}.Of(quota.Webhooks))
	results := make(chan error, 2*most)
	for range cap(results) {
		go func() {
			_, err := f.Create(t.Context(), webhook.NewWebhook{Workspace: workspace, URL: f.receiver.URL})
			results <- err
		}()
	}
	refused := 0
	for range cap(results) {
		if err := <-results; fault.Is(err, fault.Forbidden) {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	all, err := f.List(t.Context(), workspace)
	if err != nil || len(all) != most || refused != most {
		t.Fatalf("there are %d, %d were refused (%v)", len(all), refused, err)
	}
	f.must(f.Delete(t.Context(), all[0].Ref, nil))
	f.create()
}

// TestADeliveryIsBegun also when the client that caused the event has disconnected.
func TestADeliveryIsBegun(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.create()
	gone, cancel := context.WithCancel(t.Context())
	events := event.Chain("", f.clock.Now(), []event.Event{{Workspace: workspace, Deployment: "d", Type: event.OfStatus("DEPLOYED"), Status: "DEPLOYED"}})
	sent, err := f.Notify(gone, workspace, events)
	f.must(err)
	var o record.Outbox
	o.Then(func(context.Context) { cancel() })
	o.Join(sent)
	f.must(record.Commit(gone, f.table, o))
	if got := f.engine.take(); len(got) != 1 {
		t.Errorf("%d deliveries were begun", len(got))
	}
}

// readings is a table that counts how often each item is read.
type readings struct {
	table.Table
	of map[table.Key]int
}

func (r readings) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	r.of[key]++
	return r.Table.Get(ctx, key)
}

// TestAnAttemptReadsItsWebhookOnce so that the address and the secrets are from the same
// moment.
func TestAnAttemptReadsItsWebhookOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.tell("DEPLOYED")
	counted := readings{f.table, map[table.Key]int{}}
	f.config.Table = counted
	f.Store = webhook.NewStore(f.config)
	f.drive(f.engine.take()[0])
	if got := counted.of[keys.Webhook(w.Workspace, w.Webhook)]; got != 1 || len(f.receiver.all()) != 1 {
		t.Errorf("the webhook was read %d times", got)
	}
}

// TestAnotherAddressIsNotBlamed moves a webhook while its address answers that it is gone, and
// after its address has failed for days.
func TestAnotherAddressIsNotBlamed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	move := func(url string) {
		_, err := f.Patch(t.Context(), w.Ref, webhook.Patch{URL: &url})
		f.must(err)
	}
	former := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		move(f.receiver.URL)
		answer.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(former.Close)
	move(former.URL)
	f.tell("DEPLOYED")
	f.drive(f.engine.take()[0])
	if now, err := f.Get(t.Context(), w.Ref); err != nil || !now.Enabled || now.URL != f.receiver.URL {
		t.Errorf("got %+v (%v)", now, err)
	}
	f.receiver.answer(500, 500, 500, 500, 500, 500, 500, 500)
	f.tell("DEPLOYED")
	f.drive(f.engine.take()[0])
	move(f.receiver.URL + "/moved")
	if now, err := f.Get(t.Context(), w.Ref); err != nil || !now.Failing.IsZero() {
		t.Errorf("the new address fails since %v (%v)", now.Failing, err)
	}
}
