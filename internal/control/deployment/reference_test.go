package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
	"github.com/slipway-run/slipway/internal/test/check"
)

func named(name string) workspacesecret.Ref {
	return workspacesecret.Ref{Workspace: workspace, Name: name}
}

// keep creates a secret of the workspace.
func (f *fixture) keep(t *testing.T, name string, data map[string]string) {
	t.Helper()
	if _, err := f.WorkspaceSecrets().Create(t.Context(), named(name), data); err != nil {
		t.Fatal(err)
	}
}

// rotate sets a value of a secret of the workspace.
func (f *fixture) rotate(t *testing.T, name, key, value string) {
	t.Helper()
	if _, _, err := f.WorkspaceSecrets().Patch(t.Context(), named(name), workspacesecret.Patch{Data: map[string]*string{key: &value}}); err != nil {
		t.Fatal(err)
	}
}

// to makes references from texts "VARIABLE name key".
func to(texts ...string) []compute.SecretReference {
	var references []compute.SecretReference
	for _, text := range texts {
		words := strings.Fields(text)
		references = append(references, compute.SecretReference{Name: words[0], SecretName: words[1], SecretKey: words[2]})
	}
	return references
}

func referring(request deployment.NewDeployment, texts ...string) deployment.NewDeployment {
	request.SecretReferences = to(texts...)
	return request
}

// given returns the secrets that the agent of a deployment's newest revision is given.
func (f *fixture) given(t *testing.T, ref deployment.Ref) ([]deployment.Secret, error) {
	t.Helper()
	d := f.get(t, ref)
	return f.AgentSecrets(t.Context(), d, f.revision(t, ref, d.Latest))
}

func (f *fixture) wantGiven(t *testing.T, ref deployment.Ref, want ...deployment.Secret) {
	t.Helper()
	got, err := f.given(t, ref)
	check.Must(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("secrets of the agent (-want +got):\n%s", diff)
	}
}

// TestAnAgentIsGivenWhatItRefersTo checks that an agent of any source gets the values at the
// time of the request. If a listener runs it, the cluster has the values.
func TestAnAgentIsGivenWhatItRefersTo(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"api-key": "planted-first", "limit": "3"})
	own := deployment.Secret{Name: "OWN", Value: "own"}
	for _, request := range []deployment.NewDeployment{fromGit("git"), fromImage("image")} {
		request = referring(request, "KEY search api-key", "SAME search api-key", "N_JOBS_PER_WORKER search limit")
		request.Secrets = []deployment.Secret{own}
		d := f.create(t, request)
		f.wantGiven(t, d.Ref, own, deployment.Secret{Name: "KEY", Value: "planted-first"}, deployment.Secret{Name: "SAME", Value: "planted-first"},
			deployment.Secret{Name: "N_JOBS_PER_WORKER", Value: "3"})
		if limits, err := f.RunLimits(t.Context(), compute.Ref(d.Revision(d.Latest))); err != nil || limits.Jobs < 3 {
			t.Errorf("%s: %d runs at a time (%v)", d.Name, limits.Jobs, err)
		}
		f.rotate(t, "search", "api-key", "planted-second")
		f.wantGiven(t, d.Ref, own, deployment.Secret{Name: "KEY", Value: "planted-second"}, deployment.Secret{Name: "SAME", Value: "planted-second"},
			deployment.Secret{Name: "N_JOBS_PER_WORKER", Value: "3"})
		f.rotate(t, "search", "api-key", "planted-first")
	}
	remote := f.create(t, referring(at(f.newListener(t, "cluster", "agents"), "remote", ""), "KEY elsewhere api-key"))
	f.wantGiven(t, remote.Ref)
	f.wantNowhere(t, "planted")
}

// TestReferencesThatAreRefused checks that the fault names the field, when a deployment is
// created, when it is changed and when the request only validates.
func TestReferencesThatAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "1"})
	var many []string
	for i := range 21 {
		many = append(many, fmt.Sprintf("V%d secret-%d a", i, i))
	}
	present := f.create(t, referring(fromGit("present"), "KEY search a"))
	for want, texts := range map[string][]string{
		`secret_references[1].secret_name: the workspace has no secret "other".`:    {"KEY search a", "OTHER other a"},
		`secret_references[1].secret_key: the secret "search" has no key "b".`:      {"KEY search a", "B search b"},
		`secret_references[1].name KEY is given twice.`:                             {"KEY search a", "KEY search a"},
		`secret_references[0].name PORT is set by the platform.`:                    {"PORT search a"},
		`secret_references may name 20 secrets; these name 21.`:                     many,
		`secret_references[0].name "1A" is not the name of an environment variable`: {"1A search a"},
	} {
		for _, asked := range []bool{false, true} {
			request := referring(fromGit("refused"), texts...)
			request.ValidateOnly = asked
			_, err := f.Create(t.Context(), request)
			_, patchErr := f.Patch(t.Context(), present.Ref, deployment.Patch{SecretReferences: &request.SecretReferences, ValidateOnly: asked})
			for _, err := range []error{err, patchErr} {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		}
	}
	f.create(t, fromGit("refused")) // the name is free
	if got := f.get(t, present.Ref); got.Version() != present.Version() {
		t.Error("the deployment was changed")
	}
	another := referring(fromGit("stranger"), "KEY search a")
	another.Workspace = "another"
	if _, err := f.Create(t.Context(), another); !fault.Is(err, fault.Invalid) {
		t.Errorf("a secret of another workspace: got %v", err)
	}
}

// users returns the deployments that refer to a secret, each with the keys.
func (f *fixture) users(t *testing.T, name string) map[string][]string {
	t.Helper()
	found, err := f.WorkspaceSecrets().Users(t.Context(), named(name))
	check.Must(t, err)
	users := map[string][]string{}
	for _, user := range found {
		users[user.Deployment] = user.Keys
	}
	return users
}

func (f *fixture) wantUsers(t *testing.T, name string, want map[string][]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.users(t, name)); diff != "" {
		t.Errorf("users of %s (-want +got):\n%s", name, diff)
	}
}

// TestASecretIsUsedAsLongAsARevisionMayNeedIt follows a removed reference through the
// revisions that still have it.
func TestASecretIsUsedAsLongAsARevisionMayNeedIt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "1", "b": "2", "c": "3"})
	d := f.create(t, referring(fromGit("weather"), "KEY search a"))
	id := d.Deployment
	first := f.promote(t, d.Ref)
	f.wantUsers(t, "search", map[string][]string{id: {"a"}})
	refer := func(texts ...string) {
		t.Helper()
		references := to(texts...)
		f.patch(t, d.Ref, deployment.Patch{SecretReferences: &references})
	}
	refer("KEY search b") // this revision is in flight
	refer("KEY search c") // this revision waits
	refer()               // this revision waits ahead of it
	f.wantUsers(t, "search", map[string][]string{id: {"a", "b", "c"}})
	f.promote(t, d.Ref)
	// Revision a will be retired, and b is the active revision.
	f.wantUsers(t, "search", map[string][]string{id: {"a", "b"}})
	present := f.get(t, d.Ref)
	check.Must(t, f.Retired(t.Context(), present, present.Retiring))
	// A rollback may go to revision a.
	f.wantUsers(t, "search", map[string][]string{id: {"a", "b"}})
	f.promote(t, d.Ref)
	present = f.get(t, d.Ref)
	check.Must(t, f.Retired(t.Context(), present, present.Retiring))
	f.wantUsers(t, "search", map[string][]string{id: {"b"}})
	if _, _, err := f.WorkspaceSecrets().Patch(t.Context(), named("search"), workspacesecret.Patch{Data: map[string]*string{"a": nil}}); err != nil {
		t.Errorf("a key that nobody needs: %v", err)
	}
	if _, err := f.Redeploy(t.Context(), first.Ref, nil); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `secret_references[0].secret_key: the secret "search" has no key "a".`) {
		t.Errorf("redeploy of a revision whose key is gone: got %v", err)
	}
	f.rotate(t, "search", "a", "new")
	if _, err := f.Redeploy(t.Context(), first.Ref, nil); err != nil {
		t.Fatal(err)
	}
	f.wantUsers(t, "search", map[string][]string{id: {"a", "b"}})
	f.wantGiven(t, d.Ref, deployment.Secret{Name: "KEY", Value: "new"})
}

// TestErasingADeploymentLeavesNoNote also checks secrets that the deployment referred to
// before it had a revision.
func TestErasingADeploymentLeavesNoNote(t *testing.T) {
	t.Parallel()
	f, _, d := uploading(t)
	for _, name := range []string{"first", "second", "third"} {
		f.keep(t, name, map[string]string{"a": "1"})
		references := to("KEY " + name + " a")
		f.patch(t, d.Ref, deployment.Patch{SecretReferences: &references})
		if name == "second" {
			f.upload(t, d.Ref)
		}
	}
	f.delete(t, d.Ref)
	f.wantUsers(t, "third", map[string][]string{d.Deployment: {"a"}})
	if _, err := f.EraseRevisions(t.Context(), d.Ref, func(revision.Ref) error { return nil }); err != nil {
		t.Fatal(err)
	}
	f.wantPartitionsEmpty(t, d)
	for _, name := range []string{"first", "second", "third"} {
		if err := f.WorkspaceSecrets().Delete(t.Context(), named(name), nil); err != nil {
			t.Error(err)
		}
		f.wantNoItems(t, keys.SecretUses(workspace, name), keys.SecretUsesOf(workspace, d.Deployment), keys.WorkspaceSecrets(workspace))
		f.keep(t, name, nil)
		if err := f.WorkspaceSecrets().Delete(t.Context(), named(name), nil); err != nil {
			t.Error(err)
		}
	}
}

func (f *fixture) wantNoItems(t *testing.T, queries ...table.Query) {
	t.Helper()
	for _, query := range queries {
		items, err := table.AllItems(t.Context(), f.table, query)
		check.Must(t, err)
		for _, item := range items {
			if item.Text("kind") == "secret_use" || item.Bool("gone") {
				t.Errorf("%s: %v is left", query.PK, item.Key)
			}
		}
	}
}

// TestADeletionMeetsADeploymentThatRefersToTheSecret, while the deployment is created or
// changed: one of the two requests is refused.
func TestADeletionMeetsADeploymentThatRefersToTheSecret(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	changed := f.create(t, fromGit("changed"))
	for i := range 20 {
		name := fmt.Sprintf("secret-%d", i)
		f.keep(t, name, map[string]string{"a": "1"})
		refer := func() error {
			_, err := f.Create(t.Context(), referring(fromGit(name), "KEY "+name+" a"))
			return err
		}
		if i%2 == 0 {
			references := to("KEY " + name + " a")
			refer = func() error {
				_, err := f.Patch(t.Context(), changed.Ref, deployment.Patch{SecretReferences: &references})
				return err
			}
		}
		var referred, deleted error
		var running sync.WaitGroup
		running.Go(func() { referred = refer() })
		running.Go(func() { deleted = f.WorkspaceSecrets().Delete(t.Context(), named(name), nil) })
		running.Wait()
		if (referred == nil) == (deleted == nil) {
			t.Errorf("%s: the reference: %v, the deletion: %v", name, referred, deleted)
		}
	}
}

// TestSecretsThatAnAgentCannotBeGiven checks problems that a person must correct.
func TestSecretsThatAnAgentCannotBeGiven(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "planted"})
	request := referring(fromGit("weather"), "KEY search a")
	request.Secrets = []deployment.Secret{{Name: "OWN", Value: strings.Repeat("planted-", 4<<10)}}
	d := f.create(t, request)
	f.rotate(t, "search", "a", strings.Repeat("planted-", 4<<10))
	wantUnusable := func(reason string, parts ...string) {
		t.Helper()
		_, err := f.given(t, d.Ref)
		unusable, ok := errors.AsType[*deployment.StartError](err)
		if !ok || unusable.Reason != reason || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(unusable.Message, part) }) ||
			strings.Contains(unusable.Message, "planted") {
			t.Errorf("got %v, want %s with %q", err, reason, parts)
		}
	}
	wantUnusable(deployment.ReasonSecretsTooLarge, "61440 bytes", "these take 65")
	if _, err := f.RunLimits(t.Context(), compute.Ref(d.Revision(d.Latest))); err != nil {
		t.Errorf("an agent that has the value of before takes no runs any more: %v", err)
	}
	f.rotate(t, "search", "a", "planted")
	if _, err := f.given(t, d.Ref); err != nil {
		t.Error(err)
	}
	// Only a restored table can cause this.
	check.Must(t, f.table.Transact(t.Context(), table.Delete{Key: named("search").Key()}))
	wantUnusable(revision.ReasonSecretMissing, `secret_references[0]: the workspace has no secret "search" with the key "a" any more.`)
	if _, err := f.RunLimits(t.Context(), compute.Ref(d.Revision(d.Latest))); err == nil {
		t.Error("its limits are not known, and that is no error")
	}
}

// TestRestartsEndInTime makes each restart of a deployment that uses a secret take long. The
// deployments that are not reached are reported, and left as they are.
func TestRestartsEndInTime(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "1"})
	for _, name := range []string{"one", "two", "three", "four"} {
		f.promote(t, f.create(t, referring(fromGit(name), "KEY search a")).Ref)
	}
	restarted, late := 0, 0
	err := f.RestartUsers(t.Context(), named("search"), []string{"a"}, func(_ string, err error) {
		f.clock.Pass(8 * time.Second)
		switch {
		case err == nil:
			restarted++
		case fault.Is(err, fault.Unavailable):
			late++
		default:
			t.Error(err)
		}
	})
	if err != nil || restarted != 2 || late != 2 {
		t.Errorf("%d were restarted and %d late (%v)", restarted, late, err)
	}
}

// TestRestartsGoOnWithoutTheCaller whose request has changed the values.
func TestRestartsGoOnWithoutTheCaller(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "1"})
	f.promote(t, f.create(t, referring(fromGit("one"), "KEY search a")).Ref)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	restarted := 0
	err := f.RestartUsers(ctx, named("search"), []string{"a"}, func(_ string, err error) {
		if err != nil {
			t.Error(err)
		}
		restarted++
	})
	if err != nil || restarted != 1 {
		t.Errorf("%d were restarted (%v)", restarted, err)
	}
}
