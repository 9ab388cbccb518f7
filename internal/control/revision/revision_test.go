package revision_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var (
	made  = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	later = made.Add(time.Minute)
	ref   = revision.Ref{Workspace: "w", Deployment: "d", Revision: "r2"}
)

func write(t *testing.T, tb table.Table, change revision.Change) {
	t.Helper()
	check.Must(t, tb.Transact(t.Context(), change.Write))
}

// read returns the revision as it is for a deployment with that slot.
func read(t *testing.T, tb table.Table, slot string) revision.Revision {
	t.Helper()
	item, err := tb.Get(t.Context(), ref.Key())
	check.Must(t, err)
	r, err := revision.Decode(ref, item, slot)
	check.Must(t, err)
	return r
}

func TestARevisionKeepsWhatItWasMadeFrom(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	spec := revision.Spec{
		Source:  revision.GitHub,
		Config:  revision.Config{RepoRef: new("main"), ConfigPath: new("framework.json"), ImageURI: new("image")},
		RepoURL: new("https://git.test/a"), ResourceSpec: json.RawMessage(`{"cpu":1.5}`),
		Secrets: []byte{0, 1, 255}, Credentials: []byte{2},
	}
	write(t, tb, revision.Put(ref, spec, revision.Creating, made))
	want := revision.Revision{
		Ref: ref, Spec: spec, Created: made, Updated: made, Status: revision.Creating,
		Since: map[revision.Status]time.Time{revision.Creating: made},
	}
	if diff := cmp.Diff(want, read(t, tb, ref.Revision), cmpopts.IgnoreUnexported(want)); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
}

func TestAbsentPartsOfASpecStayAbsent(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{Source: revision.GitHub}, revision.Creating, made))
	if diff := cmp.Diff(revision.Spec{Source: revision.GitHub}, read(t, tb, "").Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestQueuedMeansSkippedOnceSuperseded checks each status with each place of the slot.
func TestQueuedMeansSkippedOnceSuperseded(t *testing.T) {
	t.Parallel()
	for _, status := range statuses {
		for slot, superseded := range map[string]bool{"": false, "r1": false, "r2": false, "r3": true} {
			item := revision.Put(ref, revision.Spec{}, status, made).Write.(table.Put).Item
			r, err := revision.Decode(ref, &item, slot)
			check.Must(t, err)
			want := status
			if superseded && status == revision.Queued {
				want = revision.Skipped
			}
			if r.Status != want {
				t.Errorf("a stored %s with the slot at %q reads as %s, want %s", status, slot, r.Status, want)
			}
		}
	}
}

func TestAChangeIsWrittenOnceOnly(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{}, revision.AwaitingBuild, made))
	change := read(t, tb, "").Change(later, revision.Building)
	write(t, tb, change)
	var failed *table.ConditionFailed
	if err := tb.Transact(t.Context(), change.Write); !errors.As(err, &failed) {
		t.Errorf("the second write ended with %v, want a failed condition", err)
	}
	if got := read(t, tb, ""); got.Status != revision.Building || !got.Updated.Equal(later) || !got.Created.Equal(made) {
		t.Errorf("got %+v, want it BUILDING since %v", got, later)
	}
}

// TestAForbiddenChangePanics checks every pair of statuses that is not in the transition
// table.
func TestAForbiddenChangePanics(t *testing.T) {
	t.Parallel()
	for _, from := range statuses {
		for _, next := range statuses {
			if got, want := panics(func() { revision.Revision{Status: from}.Change(made, next) }), !from.MayBecome(next); got != want {
				t.Errorf("changing %s to %s panics: got %v, want %v", from, next, got, want)
			}
		}
	}
}

func panics(do func()) (did bool) {
	defer func() { did = recover() != nil }()
	do()
	return false
}

func TestTheVerbsLeadToDeployed(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{}, revision.Building, made))
	artifact := build.Artifact{Dir: "/tree", Start: []string{"./agent"}, Env: map[string]string{"A": "b"}, Graphs: []string{"agent"}}
	with := build.Record{Builder: "v1", Language: "python", LanguageVersion: "3.13.1", Dependencies: "sha256:00"}
	write(t, tb, read(t, tb, "").Built(later, build.Result{CommitSHA: "c0ffee", Artifact: artifact, Record: with}))
	write(t, tb, read(t, tb, "").Releasing(later))
	if diff := cmp.Diff([]table.Key{ref.Key()}, releases(t, tb)); diff != "" {
		t.Errorf("releases to keep running (-want +got):\n%s", diff)
	}
	write(t, tb, read(t, tb, "").Change(later, revision.Deployed))
	want := revision.Revision{
		Ref: ref, Created: made, Updated: later, Status: revision.Deployed, CommitSHA: "c0ffee", Artifact: artifact, Build: &with,
		Since: map[revision.Status]time.Time{
			revision.Building: made, revision.AwaitingDeploy: later, revision.Deploying: later, revision.Deployed: later,
		},
	}
	if diff := cmp.Diff(want, read(t, tb, ""), cmpopts.IgnoreUnexported(want)); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
	// The record outlives the build, and is also the record of a revision that is made from
	// it.
	write(t, tb, revision.Change{Write: want.Forget()})
	write(t, tb, revision.Change{Write: want.Forgot()})
	forgotten := read(t, tb, "")
	if diff := cmp.Diff(&with, forgotten.Build); diff != "" || forgotten.Artifact.Dir != "" {
		t.Errorf("a build that is not kept (-want +got):\n%s", diff)
	}
	write(t, tb, revision.Change{Write: revision.Retired(ref, later)})
	if got := releases(t, tb); got != nil {
		t.Errorf("releases to keep running: got %v, want none", got)
	}
	if got := read(t, tb, "").Status; got != revision.Deployed {
		t.Errorf("a retired revision is %s, want DEPLOYED", got)
	}
}

func TestAFailureSaysWhyAndIsNotKeptRunning(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{}, revision.AwaitingDeploy, made))
	write(t, tb, read(t, tb, "").Releasing(later))
	write(t, tb, read(t, tb, "").Note(later, "REASON", "words"))
	if got := read(t, tb, ""); got.Status != revision.Deploying || got.Reason != "REASON" || got.Message != "words" {
		t.Errorf("a noted failure: got %+v, want it DEPLOYING with its reason", got)
	}
	write(t, tb, read(t, tb, "").Failed(later, "OTHER", "other words"))
	if got := read(t, tb, ""); got.Status != revision.DeployFailed || got.Reason != "OTHER" || got.Message != "other words" {
		t.Errorf("got %+v, want it DEPLOY_FAILED with its reason", got)
	}
	if got := releases(t, tb); got != nil {
		t.Errorf("releases to keep running: got %v, want none", got)
	}
}

func TestACancelledRevisionSaysSoAndIsNotKeptRunning(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{}, revision.AwaitingDeploy, made))
	write(t, tb, read(t, tb, "").Releasing(later))
	write(t, tb, read(t, tb, "").Cancelled(later))
	if got := read(t, tb, ""); got.Status != revision.Interrupted || got.Reason != revision.ReasonCancelled || got.Message == "" {
		t.Errorf("got %+v, want it INTERRUPTED with its reason", got)
	}
	if got := releases(t, tb); got != nil {
		t.Errorf("releases to keep running: got %v, want none", got)
	}
}

// TestARevisionFromABuiltOneIsBuilt makes a revision from the values of another revision.
func TestARevisionFromABuiltOneIsBuilt(t *testing.T) {
	t.Parallel()
	spec := revision.Spec{Source: revision.GitHub, Config: revision.Config{RepoRef: new("main")}, Secrets: []byte{1}}
	record := build.NewRecord("")
	for name, from := range map[string]revision.Revision{
		"built":     {Spec: spec, CommitSHA: "c0ffee", Artifact: build.Artifact{Dir: "/tree"}, Build: &record},
		"not built": {Spec: spec},
		"an image":  {Spec: revision.Spec{Source: revision.ExternalDocker, Config: revision.Config{ImageURI: new("a")}}},
	} {
		tb := fixtures.DomainTable(t, clock.System)
		write(t, tb, revision.PutBuilt(ref, from, revision.Creating, made))
		got := read(t, tb, "")
		want := revision.Revision{
			Ref: ref, Spec: from.Spec, Created: made, Updated: made, Status: revision.Creating, CommitSHA: from.CommitSHA, Artifact: from.Artifact, Build: from.Build,
			Since: map[revision.Status]time.Time{revision.Creating: made}, Again: true,
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(got)); diff != "" || got.IsBuilt() != (name != "not built") {
			t.Errorf("%s: built: %v (-want +got):\n%s", name, got.IsBuilt(), diff)
		}
	}
}

func TestANotedMessageThatIsNotUTF8IsMended(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	write(t, tb, revision.Put(ref, revision.Spec{}, revision.Building, made))
	write(t, tb, read(t, tb, "").Note(later, "REASON", "output \xff\xfe ends"))
	if got, want := read(t, tb, "").Message, "output \uFFFD ends"; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
}

func TestDecodeRefusesOtherItems(t *testing.T) {
	t.Parallel()
	body := []byte("{}")
	times := table.Attrs{"created": "2026-03-01T12:00:00.000000Z", "updated": "2026-03-01T12:00:00.000000Z"}
	for name, change := range map[string]table.Attrs{
		"another kind":      {"kind": "deployment", "schema": int64(1)},
		"a newer schema":    {"kind": "revision", "schema": int64(2)},
		"a broken artifact": {"kind": "revision", "schema": int64(1), "artifact": "{"},
		"a broken time":     {"kind": "revision", "schema": int64(1), "created": "yesterday"},
		"a broken phase":    {"kind": "revision", "schema": int64(1), "since_BUILDING": "yesterday"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attrs := table.Attrs{}
			for _, of := range []table.Attrs{times, change} {
				maps.Copy(attrs, of)
			}
			if r, err := revision.Decode(ref, &table.Item{Key: ref.Key(), Attrs: attrs, Body: body}, ""); err == nil {
				t.Errorf("got %+v, want an error", r)
			}
		})
	}
}

// releases returns the keys of the revisions that a compute target must keep running.
func releases(t *testing.T, tb table.Table) []table.Key {
	t.Helper()
	items, err := table.AllItems(t.Context(), tb, keys.Releases())
	check.Must(t, err)
	var found []table.Key
	for _, item := range items {
		found = append(found, item.Key)
	}
	return found
}

// TestAChangeOfARevisionThatHasMovedOnIsRefused makes each change from a reading of the revision
// after which the revision was cancelled, or was found to fail.
func TestAChangeOfARevisionThatHasMovedOnIsRefused(t *testing.T) {
	t.Parallel()
	cancelled := func(r revision.Revision) revision.Change { return r.Cancelled(later) }
	doomed := func(r revision.Revision) revision.Change { return r.Note(later, "REASON", "words") }
	for name, c := range map[string]struct {
		from          revision.Status
		before        func(revision.Revision) revision.Change
		happens, made func(revision.Revision) revision.Change
	}{
		"a note":               {revision.Deploying, nil, cancelled, doomed},
		"a lost build":         {revision.Building, nil, cancelled, func(r revision.Revision) revision.Change { return r.Losing(later) }},
		"an image":             {revision.Deploying, nil, cancelled, func(r revision.Revision) revision.Change { return r.Pinned(later, "image@sha256:00") }},
		"a wait":               {revision.Deploying, nil, cancelled, func(r revision.Revision) revision.Change { return r.Waiting(later, "R", "w") }},
		"a wait over a reason": {revision.Deploying, nil, doomed, func(r revision.Revision) revision.Change { return r.Waiting(later, "R", "w") }},
		"a promotion of a canary that fails": {
			revision.Deploying, func(r revision.Revision) revision.Change { return r.CanaryBegun(later, 10) }, doomed,
			func(r revision.Revision) revision.Change { return r.Promoted(later) },
		},
		"a build that is not kept": {revision.Deploying, nil, cancelled, func(r revision.Revision) revision.Change { return revision.Change{Write: r.Forget()} }},
		"a build that is kept":     {revision.Deploying, nil, doomed, func(r revision.Revision) revision.Change { return revision.Change{Write: r.Forgot()} }},
	} {
		tb := fixtures.DomainTable(t, clock.System)
		write(t, tb, revision.Put(ref, revision.Spec{}, c.from, made))
		if c.before != nil {
			write(t, tb, c.before(read(t, tb, "")))
		}
		late := c.made(read(t, tb, ""))
		write(t, tb, c.happens(read(t, tb, "")))
		want := read(t, tb, "")
		if _, refused := errors.AsType[*table.ConditionFailed](tb.Transact(t.Context(), late.Write)); !refused {
			t.Errorf("%s is written: %+v", name, read(t, tb, ""))
		}
		if diff := cmp.Diff(want, read(t, tb, ""), cmpopts.IgnoreUnexported(want)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
