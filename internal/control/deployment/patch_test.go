package deployment_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
)

// TestWhatMakesARevision checks for each member whether a value of it makes a revision.
func TestWhatMakesARevision(t *testing.T) {
	t.Parallel()
	type (
		patch  = deployment.Patch
		source = deployment.SourceConfig
		config = revision.Config
	)
	for name, c := range map[string]struct {
		image bool
		patch patch
		want  bool
	}{
		"nothing":                   {patch: patch{}},
		"the name it has":           {patch: patch{Name: new("weather")}},
		"the source it has":         {patch: patch{Source: new(revision.GitHub)}},
		"build_on_push":             {patch: patch{SourceConfig: source{BuildOnPush: new(true)}}},
		"install_command":           {patch: patch{SourceConfig: source{InstallCommand: new("npm ci")}}},
		"build_command":             {patch: patch{SourceConfig: source{BuildCommand: new("npm run build")}}},
		"custom_url":                {image: true, patch: patch{SourceConfig: source{CustomURL: new("https://a.test")}}},
		"repo_ref":                  {patch: patch{RevisionConfig: config{RepoRef: new("dev")}}, want: true},
		"the repo_ref it has":       {patch: patch{RevisionConfig: config{RepoRef: new("main")}}, want: true},
		"framework_config_path":     {patch: patch{RevisionConfig: config{ConfigPath: new("b.json")}}, want: true},
		"image_uri":                 {image: true, patch: patch{RevisionConfig: config{ImageURI: new("registry.test/agent:2")}}, want: true},
		"resource_spec":             {image: true, patch: patch{SourceConfig: source{ResourceSpec: json.RawMessage(`{"cpu":2}`)}}, want: true},
		"an empty resource_spec":    {image: true, patch: patch{SourceConfig: source{ResourceSpec: json.RawMessage(`{}`)}}, want: true},
		"secrets":                   {patch: patch{Secrets: &[]deployment.Secret{{Name: "A", Value: "b"}}}, want: true},
		"no secrets":                {patch: patch{Secrets: &[]deployment.Secret{}}, want: true},
		"one that does and another": {patch: patch{SourceConfig: source{BuildOnPush: new(true)}, RevisionConfig: config{RepoRef: new("dev")}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			request := fromGit("weather")
			if c.image {
				request = fromImage("weather")
			}
			before := f.create(t, request)
			after := f.patch(t, before.Ref, c.patch)
			if got := after.Latest != before.Latest; got != c.want {
				t.Errorf("it made a revision: got %v, want %v", got, c.want)
			}
			if got, want := len(f.revisions(t, before.Ref)), map[bool]int{false: 1, true: 2}[c.want]; got != want {
				t.Errorf("got %d revisions, want %d", got, want)
			}
			if diff := cmp.Diff(after, f.get(t, before.Ref), sameDeployment); diff != "" {
				t.Errorf("the deployment as it is read later (-patched +read):\n%s", diff)
			}
		})
	}
}

func TestAPatchChangesWhatItNamesOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	before := f.create(t, fromGit("weather"))
	after := f.patch(t, before.Ref, deployment.Patch{
		SourceConfig:   deployment.SourceConfig{BuildOnPush: new(true)},
		RevisionConfig: revision.Config{RepoRef: new("dev")},
	})
	want := before
	want.SourceConfig.BuildOnPush = new(true)
	want.RevisionConfig = revision.Config{RepoRef: new("dev"), ConfigPath: new("framework.json")}
	want.Latest, want.Next, want.Updated = after.Latest, after.Latest, after.Updated
	if diff := cmp.Diff(want, after, sameDeployment); diff != "" || !after.Updated.After(before.Updated) {
		t.Errorf("deployment (-want +got):\n%s", diff)
	}
	r := f.revision(t, after.Ref, after.Latest)
	if diff := cmp.Diff(want.RevisionConfig, r.Config); diff != "" || r.Status != revision.Queued {
		t.Errorf("the new revision is %s (-want +got):\n%s", r.Status, diff)
	}
	if diff := cmp.Diff(before.RevisionConfig, f.revision(t, before.Ref, before.Latest).Config); diff != "" {
		t.Errorf("the revision before was changed (-want +got):\n%s", diff)
	}
}

// TestAResourceSpecIsReplacedWhole checks that nothing of the previous ResourceSpec is left.
func TestAResourceSpecIsReplacedWhole(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromImage("weather"))
	d = f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{ResourceSpec: json.RawMessage(`{"memory_mb":512}`)}})
	if got := string(f.get(t, d.Ref).SourceConfig.ResourceSpec); got != `{"memory_mb":512}` {
		t.Errorf("got %s", got)
	}
	if got := string(f.revision(t, d.Ref, d.Latest).ResourceSpec); got != `{"memory_mb":512}` {
		t.Errorf("the new revision has %s", got)
	}
}

// TestImmutableMembers sends each member with another value, with its present value, and with
// a value where there was no value.
func TestImmutableMembers(t *testing.T) {
	t.Parallel()
	type patch = deployment.Patch
	in := func(c deployment.SourceConfig) patch { return patch{SourceConfig: c} }
	f := setUp(t)
	credential := f.credential(t)
	request := fromGit("weather")
	request.SourceConfig.IntegrationID, request.SourceConfig.DeploymentType = &credential, new("dev")
	same := []patch{
		{Name: new("weather")}, {Source: new(revision.GitHub)},
		in(deployment.SourceConfig{IntegrationID: &credential}), in(deployment.SourceConfig{DeploymentType: new("dev")}),
		in(request.SourceConfig), in(deployment.SourceConfig{ListenerConfig: &deployment.ListenerConfig{}}),
	}
	other := map[string]patch{
		"name":                          {Name: new("climate")},
		"source":                        {Source: new(revision.ExternalDocker)},
		"source_config.integration_id":  in(deployment.SourceConfig{IntegrationID: new("i2")}),
		"source_config.repo_url":        in(deployment.SourceConfig{RepoURL: new("https://git.test/other")}),
		"source_config.deployment_type": in(deployment.SourceConfig{DeploymentType: new("prod")}),
		"source_config.listener_id":     in(deployment.SourceConfig{ListenerID: new("l1")}),
		"source_config.listener_config.k8s_namespace": in(deployment.SourceConfig{
			ListenerConfig: &deployment.ListenerConfig{K8sNamespace: new("agents")},
		}),
	}
	d := f.create(t, request)
	for _, patch := range same {
		if after := f.patch(t, d.Ref, patch); cmp.Diff(d.Spec, after.Spec) != "" || after.Latest != d.Latest {
			t.Errorf("the same value changed it (-before +after):\n%s", cmp.Diff(d, after, sameDeployment))
		}
	}
	d = f.get(t, d.Ref)
	for member, patch := range other {
		patch.RevisionConfig.RepoRef = new("dev")
		_, err := f.Patch(t.Context(), d.Ref, patch)
		wantInvalid(t, err, member+" cannot be changed.")
	}
	if diff := cmp.Diff(d, f.get(t, d.Ref), sameDeployment); diff != "" {
		t.Errorf("a refused PATCH changed it (-before +after):\n%s", diff)
	}
	if got := f.revisions(t, d.Ref); len(got) != 1 {
		t.Errorf("refused PATCHes made revisions: %v", got)
	}
}

func TestAnImmutableMemberThatWasNullMayNotBeSet(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	for member, config := range map[string]deployment.SourceConfig{
		"source_config.integration_id":  {IntegrationID: new("i1")},
		"source_config.deployment_type": {DeploymentType: new("dev")},
	} {
		_, err := f.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: config})
		wantInvalid(t, err, member+" cannot be changed.")
	}
}

func TestAllImmutableMembersAreToldAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	_, err := f.Patch(t.Context(), d.Ref, deployment.Patch{Name: new("a"), Source: new(revision.ExternalDocker)})
	wantInvalid(t, err, "name cannot be changed. source cannot be changed.")
}

// TestRulesHoldForTheStateAfterAPatch combines stored values with values of the request.
func TestRulesHoldForTheStateAfterAPatch(t *testing.T) {
	t.Parallel()
	const tagged = "source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1)."
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig.BuildOnPush = new(true)
	d := f.create(t, request)
	onPush, tag := deployment.SourceConfig{BuildOnPush: new(true)}, revision.Config{RepoRef: new("refs/tags/v1")}
	_, err := f.Patch(t.Context(), d.Ref, deployment.Patch{RevisionConfig: tag})
	wantInvalid(t, err, tagged)
	d = f.patch(t, d.Ref, deployment.Patch{RevisionConfig: tag, SourceConfig: deployment.SourceConfig{BuildOnPush: new(false)}})
	_, err = f.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: onPush})
	wantInvalid(t, err, tagged)
	f.patch(t, d.Ref, deployment.Patch{SourceConfig: onPush, RevisionConfig: revision.Config{RepoRef: new("main")}})
}

func TestMembersOfTheOtherSourceAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	git, image := f.create(t, fromGit("git")), f.create(t, fromImage("image"))
	for want, patch := range map[string]deployment.Patch{
		"source_config.custom_url" + onlyImage:        {SourceConfig: deployment.SourceConfig{CustomURL: new("https://a.test")}},
		"source_config.resource_spec" + onlyImage:     {SourceConfig: deployment.SourceConfig{ResourceSpec: json.RawMessage("{}")}},
		"source_revision_config.image_uri" + anyImage: {RevisionConfig: revision.Config{ImageURI: new("a")}},
	} {
		_, err := f.Patch(t.Context(), git.Ref, patch)
		wantInvalid(t, err, want)
	}
	for want, patch := range map[string]deployment.Patch{
		"source_config.build_on_push" + onlyGit:                    {SourceConfig: deployment.SourceConfig{BuildOnPush: new(false)}},
		"source_revision_config.repo_ref" + onlyGit:                {RevisionConfig: revision.Config{RepoRef: new("a")}},
		"source_revision_config.framework_config_path" + onlyBuilt: {RevisionConfig: revision.Config{ConfigPath: new("a")}},
	} {
		_, err := f.Patch(t.Context(), image.Ref, patch)
		wantInvalid(t, err, want)
	}
}

// TestTheDerivedAddressMayBeSentBack checks that a client may send back the address that it
// has read.
func TestTheDerivedAddressMayBeSentBack(t *testing.T) {
	t.Parallel()
	const derived = "https://slipway.test/d/1"
	f := setUp(t)
	sent := deployment.Patch{AgentURL: derived, SourceConfig: deployment.SourceConfig{CustomURL: new(derived)}}
	for _, request := range []deployment.NewDeployment{fromGit("git"), fromImage("image")} {
		d := f.create(t, request)
		if d = f.patch(t, d.Ref, sent); d.SourceConfig.CustomURL != nil {
			t.Errorf("from %s: custom_url %s was stored", d.Source, *d.SourceConfig.CustomURL)
		}
	}
	own := fromImage("own")
	own.SourceConfig.CustomURL = new("https://own.test")
	d := f.create(t, own)
	if d = f.patch(t, d.Ref, sent); *d.SourceConfig.CustomURL != derived {
		t.Errorf("custom_url: got %s, want %s in place of another one", *d.SourceConfig.CustomURL, derived)
	}
}

func TestAPatchOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	for _, ref := range []deployment.Ref{{Workspace: workspace, Deployment: "unknown"}, {Workspace: "another", Deployment: d.Deployment}} {
		if _, err := f.Patch(t.Context(), ref, deployment.Patch{}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v, want a fault of kind not_found", ref, err)
		}
	}
}

// TestPatchesThatMeetAreAllKept sends 50 concurrent PATCHes of one deployment, half of which
// make a revision.
func TestPatchesThatMeetAreAllKept(t *testing.T) {
	t.Parallel()
	const n = 50
	f := setUp(t)
	d := f.create(t, fromImage("weather"))
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		patch := deployment.Patch{SourceConfig: deployment.SourceConfig{CustomURL: new(fmt.Sprintf("https://%d.test", i))}}
		if i%2 == 0 {
			patch = deployment.Patch{RevisionConfig: revision.Config{ImageURI: new(fmt.Sprintf("image:%d", i))}}
		}
		all.Go(func() { _, errs[i] = f.Patch(t.Context(), d.Ref, patch) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("PATCH %d: %v", i, err)
		}
	}
	images := map[string]bool{}
	revisions := f.revisions(t, d.Ref)
	for _, r := range revisions {
		images[*r.Config.ImageURI] = true
	}
	d = f.get(t, d.Ref)
	if len(images) != n/2+1 || d.Latest != revisions[0].Revision || *d.RevisionConfig.ImageURI != *revisions[0].Config.ImageURI {
		t.Errorf("got images %v with %s the newest of the deployment %+v, want one of each PATCH and the newest there", images, revisions[0].Revision, d)
	}
	if url := d.SourceConfig.CustomURL; url == nil || !strings.HasSuffix(*url, ".test") {
		t.Errorf("custom_url: got %v, want that of some PATCH", url)
	}
}

func TestListsAreNewestFirstAndPaged(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var names, ids []string
	for i := range 5 {
		d := f.create(t, fromGit(fmt.Sprintf("d%d", i)))
		names = append([]string{d.Name}, names...)
	}
	d := f.create(t, fromGit("d5"))
	names, ids = append([]string{d.Name}, names...), []string{d.Latest}
	for range 5 {
		d = f.patch(t, d.Ref, deployment.Patch{Secrets: &[]deployment.Secret{}})
		ids = append([]string{d.Latest}, ids...)
	}
	for _, window := range []record.Window{{Limit: 1}, {Limit: 4}, {Offset: 2, Limit: 2}, {Offset: 4, Limit: 100}, {Offset: 6, Limit: 1}, {Offset: 1 << 30, Limit: 100}} {
		from := min(window.Offset, len(names))
		to := min(from+window.Limit, len(names))
		found, err := f.Search(t.Context(), workspace, deployment.Filter{}, window)
		got := []string{}
		for _, d := range found.Items {
			got = append(got, d.Name)
		}
		if diff := cmp.Diff(names[from:to], got); err != nil || diff != "" {
			t.Errorf("deployments %v: %v (-want +got):\n%s", window, err, diff)
		}
		revisions, err := f.SearchRevisions(t.Context(), d.Ref, deployment.RevisionFilter{}, window)
		got = []string{}
		for _, r := range revisions.Items {
			got = append(got, r.Revision)
		}
		if diff := cmp.Diff(ids[from:to], got); err != nil || diff != "" {
			t.Errorf("revisions %v: %v (-want +got):\n%s", window, err, diff)
		}
	}
}

// TestAChangeOfAnotherVersion checks that the change is refused, and changes nothing.
func TestAChangeOfAnotherVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	seen := []int64{d.Version()}
	command := "make"
	patch := deployment.Patch{SourceConfig: deployment.SourceConfig{BuildCommand: &command}, Expect: seen}
	changed := f.patch(t, d.Ref, patch)
	if got := f.get(t, d.Ref); changed.Version() == d.Version() || got.Version() != changed.Version() {
		t.Errorf("versions: created %d, changed %d, read %d", d.Version(), changed.Version(), got.Version())
	}
	again := "make all"
	patch.SourceConfig.BuildCommand = &again
	for _, stale := range [][]int64{seen, {}} {
		patch.Expect = stale
		if _, err := f.Patch(t.Context(), d.Ref, patch); !fault.Is(err, fault.Stale) {
			t.Errorf("patch of %v: got %v", stale, err)
		}
		if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{Expect: stale}); !fault.Is(err, fault.Stale) {
			t.Errorf("deletion of %v: got %v", stale, err)
		}
	}
	if got := f.get(t, d.Ref); got.Version() != changed.Version() || got.Status == deployment.AwaitingDelete {
		t.Errorf("got version %d, %s", got.Version(), got.Status)
	}
	if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{Expect: []int64{7, changed.Version()}}); err != nil {
		t.Error(err)
	}
}
