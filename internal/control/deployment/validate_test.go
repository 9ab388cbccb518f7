package deployment_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	onlyImage  = " applies to source external_docker only."
	onlyGit    = " applies to source github only."
	onlyBuilt  = " applies to source github or internal_source only."
	onlySized  = " applies to source github, internal_docker or internal_source only."
	anyImage   = " applies to source external_docker or internal_docker only."
	noControls = " may not hold control characters."
	noURL      = "source_config.repo_url must be the URL of a git repository (https, ssh or file)."
	noLogin    = "source_config.repo_url has credentials that cannot be used: no control characters, and no colon in the user name."
)

// TestRulesBetweenMembers breaks one rule at a time.
func TestRulesBetweenMembers(t *testing.T) {
	t.Parallel()
	type request = deployment.NewDeployment
	git := func(change func(*request)) request { r := fromGit("weather"); change(&r); return r }
	image := func(change func(*request)) request { r := fromImage("weather"); change(&r); return r }
	secrets := func(secrets ...deployment.Secret) request {
		return git(func(r *request) { r.Secrets = secrets })
	}
	url := func(url string) request { return git(func(r *request) { r.SourceConfig.RepoURL = &url }) }
	for name, c := range map[string]struct {
		request request
		want    string
	}{

		"custom_url from git":      {git(func(r *request) { r.SourceConfig.CustomURL = new("https://a.test") }), "source_config.custom_url" + onlyImage},
		"resource_spec from git":   {git(func(r *request) { r.SourceConfig.ResourceSpec = json.RawMessage("{}") }), "source_config.resource_spec" + onlyImage},
		"listener_id from git":     {git(func(r *request) { r.SourceConfig.ListenerID = new("l") }), "source_config.listener_id" + onlyImage},
		"listener_config from git": {git(func(r *request) { r.SourceConfig.ListenerConfig = &deployment.ListenerConfig{} }), "source_config.listener_config" + onlyImage},
		"image_uri from git":       {git(func(r *request) { r.RevisionConfig.ImageURI = new("i") }), "source_revision_config.image_uri" + anyImage},
		"no repo_url":              {git(func(r *request) { r.SourceConfig.RepoURL = nil }), "source_config.repo_url is required when source is github."},
		"no repo_ref":              {git(func(r *request) { r.RevisionConfig.RepoRef = nil }), "source_revision_config.repo_ref is required when source is github."},
		"an empty repo_ref":        {git(func(r *request) { r.RevisionConfig.RepoRef = new("") }), "source_revision_config.repo_ref is required when source is github."},
		"a full branch ref": {
			git(func(r *request) { r.RevisionConfig.RepoRef = new("refs/heads/main") }),
			`source_revision_config.repo_ref must be a branch's bare name or a tag's full path (refs/tags/...), not "refs/heads/main".`,
		},
		"a repo_ref with a NUL":    {git(func(r *request) { r.RevisionConfig.RepoRef = new("a\x00b") }), "source_revision_config.repo_ref" + noControls},
		"a repo_ref with a break":  {git(func(r *request) { r.RevisionConfig.RepoRef = new("refs/tags/a\nb") }), "source_revision_config.repo_ref" + noControls},
		"a config path with a NUL": {git(func(r *request) { r.RevisionConfig.ConfigPath = new("a\x00") }), "source_revision_config.framework_config_path" + noControls},
		"an absolute config path":  {git(func(r *request) { r.RevisionConfig.ConfigPath = new("/framework.json") }), `source_revision_config.framework_config_path must be relative to the root of the repository, and stay in it, not "/framework.json".`},
		"a config path outside":    {git(func(r *request) { r.RevisionConfig.ConfigPath = new("a/../../x.json") }), `source_revision_config.framework_config_path must be relative to the root of the repository, and stay in it, not "a/../../x.json".`},
		"a URL of ssh with a NUL":  {url("git@a.test:b\x00"), "source_config.repo_url" + noControls},
		"a tag that is built on push": {
			git(func(r *request) {
				r.RevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = new("refs/tags/v1"), new(true)
			}),
			"source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1).",
		},
		"a file that is built on push": {
			git(func(r *request) {
				r.SourceConfig.RepoURL, r.SourceConfig.BuildOnPush = new("file:///srv/agent"), new(true)
			}),
			"source_config.build_on_push must be false when source_config.repo_url is not at a host that can report pushes.",
		},

		"integration_id of an image":  {image(func(r *request) { r.SourceConfig.IntegrationID = new("i") }), "source_config.integration_id" + onlyGit},
		"repo_url of an image":        {image(func(r *request) { r.SourceConfig.RepoURL = new("https://a.test/b") }), "source_config.repo_url" + onlyGit},
		"deployment_type of an image": {image(func(r *request) { r.SourceConfig.DeploymentType = new("dev") }), "source_config.deployment_type" + onlySized},
		"build_on_push of an image":   {image(func(r *request) { r.SourceConfig.BuildOnPush = new(false) }), "source_config.build_on_push" + onlyGit},
		"install_command of an image": {image(func(r *request) { r.SourceConfig.InstallCommand = new("npm ci") }), "source_config.install_command" + onlyBuilt},
		"build_command of an image":   {image(func(r *request) { r.SourceConfig.BuildCommand = new("npm run build") }), "source_config.build_command" + onlyBuilt},
		"repo_ref of an image":        {image(func(r *request) { r.RevisionConfig.RepoRef = new("main") }), "source_revision_config.repo_ref" + onlyGit},
		"config path of an image":     {image(func(r *request) { r.RevisionConfig.ConfigPath = new("a") }), "source_revision_config.framework_config_path" + onlyBuilt},
		"no image_uri":                {image(func(r *request) { r.RevisionConfig.ImageURI = nil }), "source_revision_config.image_uri is required when source is external_docker."},
		"an empty image_uri":          {image(func(r *request) { r.RevisionConfig.ImageURI = new("") }), "source_revision_config.image_uri is required when source is external_docker."},
		"an unknown listener":         {image(func(r *request) { r.SourceConfig.ListenerID = new("l1") }), "source_config.listener_id: listener ID l1 not found."},
		"a namespace without a listener": {
			image(func(r *request) {
				r.SourceConfig.ListenerConfig = &deployment.ListenerConfig{K8sNamespace: new("agents")}
			}),
			"source_config.listener_config.k8s_namespace needs a source_config.listener_id.",
		},

		"an empty URL":                   {url(""), noURL},
		"a path":                         {url("/srv/repo"), noURL},
		"a local transport":              {url("ext::sh -c id"), noURL},
		"an unknown scheme":              {url("ftp://a.test/b"), noURL},
		"git's own transport":            {url("git://a.test/b"), noURL},
		"a scheme alone":                 {url("https://"), noURL},
		"a URL without a host":           {url("https:///b"), noURL},
		"a file without a path":          {url("file:"), noURL},
		"a URL that is none":             {url("https://a.test/%zz"), noURL},
		"a URL with a line break":        {url("https://a.test/b\nc"), "source_config.repo_url" + noControls},
		"an option":                      {url("--upload-pack=id"), noURL},
		"a password with a line break":   {url("https://u:a%0Ahost=b@a.test/b"), noLogin},
		"a user name with a NUL":         {url("https://u%00@a.test/b"), noLogin},
		"a user name with a colon":       {url("https://u%3Av:p@a.test/b"), noLogin},
		"a password in ssh's short form": {url("u:p@a.test:b"), noURL},
		"a password and an integration": {
			git(func(r *request) {
				r.SourceConfig.RepoURL, r.SourceConfig.IntegrationID = new("https://u:p@git.test/b"), new("i")
			}),
			"source_config.repo_url may not contain a password when there is a source_config.integration_id.",
		},

		"no secret name":         {secrets(deployment.Secret{}), `secrets[0].name "" is not the name of an environment variable: letters, digits and _, not beginning with a digit.`},
		"a secret with a dash":   {secrets(deployment.Secret{Name: "A-B"}), `secrets[0].name "A-B" is not the name of an environment variable: letters, digits and _, not beginning with a digit.`},
		"a secret with a digit":  {secrets(deployment.Secret{Name: "1A"}), `secrets[0].name "1A" is not the name of an environment variable: letters, digits and _, not beginning with a digit.`},
		"a reserved secret":      {secrets(deployment.Secret{Name: "POSTGRES_URI"}), "secrets[0].name POSTGRES_URI is set by the platform."},
		"a secret of the target": {secrets(deployment.Secret{Name: "PORT"}), "secrets[0].name PORT is set by the platform."},
		"a secret of ours":       {secrets(deployment.Secret{Name: "SLIPWAY_INVOKE_TOKEN"}), "secrets[0].name SLIPWAY_INVOKE_TOKEN is set by the platform."},
		"a secret given twice":   {secrets(deployment.Secret{Name: "A"}, deployment.Secret{Name: "A"}), "secrets[1].name A is given twice."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			_, err := f.Create(t.Context(), c.request)
			wantInvalid(t, err, c.want)
			f.wantNothing(t, "weather")
		})
	}
}

// wantInvalid checks that the error is a fault of the kind invalid with the message.
func wantInvalid(t *testing.T, err error, want string) {
	t.Helper()
	var broken *fault.Error
	if !errors.As(err, &broken) || broken.Kind != fault.Invalid || broken.Message != want {
		t.Errorf("got %#v (%v)\nwant invalid: %s", err, err, want)
	}
}

// TestNamesOfTheMachineAreAnImagesOwn sets variables that the platform sets only for agents
// without an image.
func TestNamesOfTheMachineAreAnImagesOwn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.keep(t, "search", map[string]string{"a": "1"})
	sources := map[*deployment.NewDeployment]bool{new(fromGit("git")): false, new(fromImage("image")): true, {Workspace: workspace, Name: "pushed", Source: revision.InternalDocker}: true}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "MOUNT_PREFIX", "PORT", "HOST", "SLIPWAY_INVOKE_TOKEN"} {
		ours := name == "PORT" || name == "HOST" || name == "SLIPWAY_INVOKE_TOKEN"
		for request, image := range sources {
			request.ValidateOnly = true
			request.Secrets, request.SecretReferences = []deployment.Secret{{Name: name, Value: "v"}}, nil
			_, err := f.Create(t.Context(), *request)
			request.Secrets, request.SecretReferences = nil, to(name+" search a")
			_, referredErr := f.Create(t.Context(), *request)
			for list, err := range map[string]error{"secrets": err, "secret_references": referredErr} {
				if ours || !image {
					wantInvalid(t, err, list+"[0].name "+name+" is set by the platform.")
				} else if err != nil {
					t.Errorf("%s of %s: %v", name, request.Source, err)
				}
			}
		}
	}
}

func TestCommandsMayNotHoldWhatAShellReads(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for _, command := range []string{"a'b", `a"b`, "a`b", `a\b`, "a\nb", "a\rb", "a\x00b", "a\tb", "a|b", "a;b", "a$b", "a<b", "a>b", "a&b", "a&&&b"} {
		request := fromGit("weather")
		request.SourceConfig.InstallCommand, request.SourceConfig.BuildCommand = &command, &command
		_, err := f.Create(t.Context(), request)
		words := " may not hold quotes, backslashes, line breaks, tabs or any of ` | ; $ < > &, except &&."
		wantInvalid(t, err, "source_config.install_command"+words+" source_config.build_command"+words)
	}
	f.wantNothing(t, "weather")
}

func TestAllBrokenRulesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig = deployment.SourceConfig{
		CustomURL: new("https://a.test"), BuildOnPush: new(true), InstallCommand: new("a;b"),
	}
	request.RevisionConfig.RepoRef, request.RevisionConfig.ImageURI = new("refs/tags/v1"), new("image")
	request.Secrets = []deployment.Secret{{Name: "PATH"}, {Name: "1"}}
	_, err := f.Create(t.Context(), request)
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("got %v, want a fault of kind invalid", err)
	}
	for _, field := range []string{
		"source_config.custom_url", "source_revision_config.image_uri", "source_config.repo_url", "source_config.build_on_push",
		"source_config.install_command", "secrets[0]", "secrets[1]",
	} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %q", field, err)
		}
	}
}

// TestWhatIsAllowed checks that no rule is stricter than it says.
func TestWhatIsAllowed(t *testing.T) {
	t.Parallel()
	type request = deployment.NewDeployment
	url := func(url string) func(*request) { return func(r *request) { r.SourceConfig.RepoURL = &url } }
	for name, change := range map[string]func(*request){
		"https":                url("https://git.test/a.git"),
		"http with a port":     url("http://git.test:3000/a"),
		"ssh":                  url("ssh://git@git.test:22/a"),
		"ssh's short form":     url("git@git.test:a/b.git"),
		"file":                 url("file:///srv/a"),
		"a scheme in capitals": url("HTTPS://git.test/a"),
		"a token as user name": url("https://token@git.test/a"),
		"a tag":                func(r *request) { r.RevisionConfig.RepoRef = new("refs/tags/v1") },
		"a tag, not on push": func(r *request) {
			r.RevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = new("refs/tags/v1"), new(false)
		},
		"a branch on push": func(r *request) { r.SourceConfig.BuildOnPush = new(true) },
		"a branch called tags": func(r *request) {
			r.RevisionConfig.RepoRef, r.SourceConfig.BuildOnPush = new("tags/v1"), new(true)
		},
		"commands":              func(r *request) { r.SourceConfig.InstallCommand = new("npm ci && npm test -- --x=1") },
		"no configuration path": func(r *request) { r.RevisionConfig.ConfigPath = nil },
		"settings of the server": func(r *request) {
			r.Secrets = []deployment.Secret{{Name: "LOG_LEVEL", Value: "debug"}, {Name: "N_JOBS_PER_WORKER"}}
		},
		"a lower case name":       func(r *request) { r.Secrets = []deployment.Secret{{Name: "_path", Value: "\n"}} },
		"everything for an image": func(r *request) { *r = fromImage("weather"); r.SourceConfig.CustomURL = new("https://a.test") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := fromGit("weather")
			change(&request)
			setUp(t).create(t, request)
		})
	}
}

// TestWhatCannotBeHadIsRefused asks for a volume in a place that has no volumes, for a volume that
// needs a secret, and for more secrets than there may be.
func TestWhatCannotBeHadIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	store := deployment.NewStore(deployment.Config{
		Table: f.table, Workflow: f.engine, Sealer: f.sealer, Now: f.clock.Now, Listeners: f.listeners, Integrations: f.integrations,
		Unsupported: func(spec json.RawMessage, secrets []string) []string {
			switch {
			case strings.Contains(string(spec), "volumes") && strings.Join(secrets, " ") != "KEY":
				return []string{"source_config.resource_spec.volumes is not to be had."}
			case len(secrets) > 1:
				return []string{"secrets are too many."}
			}
			return nil
		},
	})
	wants := func(text string, err error) {
		t.Helper()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v", err)
		}
	}
	want := func(err error) {
		t.Helper()
		wants("resource_spec.volumes is not to be had.", err)
	}
	volumes := json.RawMessage(`{"volumes":[{"name":"a","emptyDir":{}}]}`)
	request := fromImage("a")
	request.SourceConfig.ResourceSpec = volumes
	_, err := store.Create(t.Context(), request)
	want(err)
	request.Secrets = []deployment.Secret{{Name: "KEY", Value: "v"}}
	d, err := store.Create(t.Context(), request)
	check.Must(t, err)
	_, err = store.Patch(t.Context(), d.Ref, deployment.Patch{Secrets: &[]deployment.Secret{}})
	want(err)
	f.keep(t, "search", map[string]string{"a": "v"})
	references := to("KEY search a")
	if _, err := store.Patch(t.Context(), d.Ref, deployment.Patch{Secrets: &[]deployment.Secret{}, SecretReferences: &references, ValidateOnly: true}); err != nil {
		t.Errorf("what is referred to counts: %v", err)
	}
	if _, err := store.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{ResourceSpec: volumes}}); err != nil {
		t.Errorf("the secrets that are there count: %v", err)
	}
	many := fromGit("many")
	many.SourceConfig.ResourceSpec = nil
	many.Secrets = []deployment.Secret{{Name: "A", Value: "v"}, {Name: "B", Value: "v"}}
	_, err = store.Create(t.Context(), many)
	wants("secrets are too many.", err)
	other, err := store.Create(t.Context(), fromImage("b"))
	check.Must(t, err)
	_, err = store.Patch(t.Context(), other.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{ResourceSpec: volumes}})
	want(err)
}
