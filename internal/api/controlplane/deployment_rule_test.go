package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// TestCommandsHoldNoShellMetacharacters sends each of them in both commands, on create and on
// PATCH.
func TestCommandsHoldNoShellMetacharacters(t *testing.T) {
	t.Parallel()
	rule(t, "`install_command` and `build_command` may not hold shell metacharacters, except `&&`.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for _, name := range []string{"install_command", "build_command"} {
		detail := "source_config." + name + " may not hold quotes, backslashes, line breaks, tabs or any of ` | ; $ < > &, except &&."
		for meta := range strings.SplitSeq("' \" ` \\ \n \r \x00 \t | ; $ < > & &&& || $(x)", " ") {
			command := "npm ci" + meta + "x"
			wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("bad"), "source_config."+name, command)), http.StatusBadRequest, detail)
			wantDetail(t, f.call(t, "PATCH", path, object{"source_config": object{name: command}}), http.StatusBadRequest, detail)
		}
		for i, command := range []string{"npm ci && npm run build", "pnpm --filter=@a/b... run x", "A=b make -j2 *.c {a,b} # (x) !", "a&&b"} {
			f.create(t, with(fromGit(fmt.Sprint(name, i)), "source_config."+name, command))
		}
	}
	f.wantUnchanged(t, path, created)
}

// ownedNames are the names that the public service sets itself, and the names that Slipway
// sets.
const ownedNames = `
	VENDOR_TRACING_V2 PLATFORM_TRACING_V2 VENDOR_ENDPOINT VENDOR_PROJECT PLATFORM_PROJECT PLATFORM_FRAMEWORK_GIT_REPO FRAMEWORK_GIT_REPO_PATH VENDOR_API_KEY
	PLATFORM_CONTROL_PLANE_API_KEY POSTGRES_URI POSTGRES_PASSWORD DATABASE_URI PLATFORM_FRAMEWORK_GIT_REF PLATFORM_FRAMEWORK_GIT_REF_SHA FRAMEWORK_AUTH_TYPE
	PLATFORM_AUTH_ENDPOINT PLATFORM_TENANT_ID PLATFORM_AUTH_VERIFY_TENANT_ID PLATFORM_HOST_PROJECT_ID PLATFORM_HOST_PROJECT_NAME PLATFORM_HOST_REVISION_ID
	LOG_JSON LOG_DICT_TRACEBACKS REDIS_URI VENDOR_CALLBACKS_BACKGROUND DD_TRACE_PSYCOPG_ENABLED DD_TRACE_REDIS_ENABLED PLATFORM_DEPLOYMENT_NAME
	FRAMEWORK_CLOUD_LICENSE_KEY FRAMEWORK_HOST_API_KEY PORT HOST SLIPWAY_ANY`

// machineNames are the names that are set for agents that are not images.
const machineNames = "PATH MOUNT_PREFIX HOME TMPDIR"

// TestAttackARepositoryWithAuthInAVariableIsRefused sends, as secrets and references to
// secrets, variables that the public server obeys like its configuration file.
func TestAttackARepositoryWithAuthInAVariableIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	git, _ := f.create(t, fromGit("weather"))
	image, _ := f.create(t, fromImage("image"))
	for _, setting := range publicname.Settings() {
		for _, name := range []string{"FRAMEWORK_" + setting, strings.ToUpper(publicname.Public("framework_" + strings.ToLower(setting)))} {
			said := " is not read here: " + publicname.Instead(name) + "."
			for _, path := range []string{git, image} {
				wantDetail(t, f.call(t, "PATCH", path, object{"secrets": []any{object{"name": name, "value": "{}"}}}), http.StatusBadRequest, "secrets[0].name "+name+said)
				reference := object{"name": name, "secret_name": "a", "secret_key": "b"}
				wantDetail(t, f.call(t, "PATCH", path, object{"secret_references": []any{reference}}), http.StatusBadRequest, "secret_references[0].name "+name+said)
			}
		}
	}
}

// TestNamesThatThePlatformOwnsAreRefused sends names of each kind.
func TestNamesThatThePlatformOwnsAreRefused(t *testing.T) {
	t.Parallel()
	rule(t, "A name that the platform owns, or that is given twice, is a 400; predefined settings of the agent server may be set.")
	f := setUp(t)
	path, _ := f.create(t, fromGit("weather"))
	image, _ := f.create(t, fromImage("image"))
	secrets := func(name string) []any { return []any{object{"name": name, "value": "x"}} }
	for name := range strings.FieldsSeq(ownedNames) {
		detail := "secrets[0].name " + name + " is set by the platform."
		wantDetail(t, f.call(t, "PATCH", image, object{"secrets": secrets(name)}), http.StatusBadRequest, detail)
	}
	for name := range strings.FieldsSeq(machineNames) {
		wantStatus(t, f.call(t, "PATCH", image, object{"secrets": secrets(name)}), http.StatusOK)
		wantStatus(t, f.call(t, "POST", "/v2/deployments", with(fromImage("image-"+name), "secrets", secrets(name))), http.StatusCreated)
	}
	for name := range strings.FieldsSeq(ownedNames + " " + machineNames) {
		detail := "secrets[0].name " + name + " is set by the platform."
		wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("bad"), "secrets", secrets(name))), http.StatusBadRequest, detail)
		wantDetail(t, f.call(t, "PATCH", path, object{"secrets": secrets(name)}), http.StatusBadRequest, detail)
	}
	wantDetail(t, f.call(t, "PATCH", path, object{"secrets": append(secrets("A"), secrets("A")...)}), http.StatusBadRequest, "secrets[1].name A is given twice.")
	for name := range strings.FieldsSeq("LOG_LEVEL N_JOBS_PER_WORKER PLATFORM_API_KEY PLATFORM_ENDPOINT POSTGRES_URI_CUSTOM REDIS_URI_CUSTOM path _a") {
		wantStatus(t, f.call(t, "PATCH", path, object{"secrets": secrets(name)}), http.StatusOK)
	}
}

// TestRefsAreBranchesOrTags sends refs of each kind.
func TestRefsAreBranchesOrTags(t *testing.T) {
	t.Parallel()
	rule(t, "`repo_ref` is a branch's bare name or a tag's full path.")
	f := setUp(t)
	path, _ := f.create(t, fromGit("weather"))
	for ref, want := range map[string]int{
		"main": http.StatusOK, "feature/a": http.StatusOK, "refs/tags/v1": http.StatusOK, "refs/heads/main": http.StatusBadRequest,
		"refs/pull/1": http.StatusBadRequest, "": http.StatusBadRequest,
	} {
		if got := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": ref}}); got.StatusCode != want {
			t.Errorf("%q: got %d %s, want %d", ref, got.StatusCode, got.text, want)
		}
	}
}

const sourceNeeds = "What a source cannot do without: `repo_url` and `repo_ref` for github, `image_uri` for external_docker; missing, null or empty is a 400 that names the member."

func TestWhatEachSourceNeeds(t *testing.T) {
	t.Parallel()
	rule(t, sourceNeeds)
	f := setUp(t)
	for path, body := range map[string]object{
		"source_config.repo_url": fromGit("a"), "source_revision_config.repo_ref": fromGit("a"), "source_revision_config.image_uri": fromImage("a"),
	} {
		config, member, _ := strings.Cut(path, ".")
		missing := with(body, config, omit(body[config].(object), member))
		for name, sent := range map[string]object{"missing": missing, "null": with(body, path, nil), "empty": with(body, path, "")} {
			got := f.call(t, "POST", "/v2/deployments", sent)
			wantError(t, got, http.StatusBadRequest)
			if detail := got.id("detail"); !strings.HasPrefix(detail, path+" ") || strings.Count(detail, ".") != strings.Count(path, ".")+1 && name != "empty" {
				t.Errorf("%s %s: got %q", path, name, detail)
			}
		}
	}
	wantDetail(t, f.call(t, "POST", "/v2/deployments", object{
		"name": "bare", "source": "github", "source_config": object{}, "source_revision_config": object{}, "secrets": []any{},
	}), http.StatusBadRequest, "source_config.repo_url is required when source is github. source_revision_config.repo_ref is required when source is github.")
	f.wantNothing(t)
}

// TestMembersOfListeners sends the members of a listener that does not exist.
func TestMembersOfListeners(t *testing.T) {
	t.Parallel()
	rule(t, "`listener_id`: uuid or null; applies to external_docker; an unknown one is a 400; is refused by PATCH.")
	rule(t, "`listener_config.k8s_namespace`: string or null; applies to external_docker; is refused by PATCH.")
	rule(t, "Members of the other source: null passes, a value is a 400 that names the member.")
	f := setUp(t)
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromImage("a"), "source_config.listener_id", someID)), http.StatusBadRequest,
		"source_config.listener_id: listener ID "+someID+" not found.")
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromImage("a"), "source_config.listener_config", object{"k8s_namespace": "a"})), http.StatusBadRequest,
		"source_config.listener_config.k8s_namespace needs a source_config.listener_id.")
	for member, value := range map[string]any{"listener_id": someID, "listener_config": object{"k8s_namespace": "a"}} {
		wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("a"), "source_config."+member, value)), http.StatusBadRequest,
			"source_config."+member+" applies to source external_docker only.")
	}
	path, _ := f.create(t, with(fromImage("null"), "source_config.listener_config", object{"k8s_namespace": nil}))
	wantDetail(t, f.call(t, "PATCH", path, object{"source_config": object{"listener_config": object{"k8s_namespace": "a"}}}), http.StatusBadRequest,
		"source_config.listener_config.k8s_namespace cannot be changed.")
	wantDetail(t, f.call(t, "PATCH", path, object{"source_config": object{"listener_id": someID}}), http.StatusBadRequest,
		"source_config.listener_id cannot be changed.")
	wantStatus(t, f.call(t, "PATCH", path, object{"source_config": object{"listener_id": nil, "listener_config": object{"k8s_namespace": nil}}}), http.StatusOK)
}

// TestACustomURLHoldsNoControlCharacters sends some of them, on create and on PATCH.
func TestACustomURLHoldsNoControlCharacters(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	path, created := f.create(t, fromImage("image"))
	for _, control := range []string{"\x00", "\n", "\x1b", "\u0085"} {
		address := "https://agent.test/" + control
		detail := "source_config.custom_url may not hold control characters."
		wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromImage("bad"), "source_config.custom_url", address)), http.StatusBadRequest, detail)
		wantDetail(t, f.call(t, "PATCH", path, object{"source_config": object{"custom_url": address}}), http.StatusBadRequest, detail)
	}
	f.wantUnchanged(t, path, created)
}
