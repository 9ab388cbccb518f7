package deployment

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// rules are the rules that a request breaks.
type rules struct{ fault.Rules }

// validate checks the rules between the fields of a deployment as it would be after a request.
func validate(ref Ref, spec Spec, secrets []Secret) error {
	r := new(rules)
	r.members(spec)
	switch spec.Source {
	case revision.GitHub:
		r.github(spec)
	case revision.ExternalDocker:
		r.externalDocker(spec)
	case revision.InternalSource:
		path := spec.RevisionConfig.TarballPath
		if _, ok := upload.ParseOf(ref.Workspace, ref.Deployment, optional.Text(path)); path != nil && !ok {
			r.Breaks("source_revision_config.source_tarball_path must be the object_path of an upload-url of this deployment.")
		}
	}
	r.configPath(spec.RevisionConfig.ConfigPath)
	r.noControls("source_config.custom_url", spec.SourceConfig.CustomURL)
	r.command("source_config.install_command", spec.SourceConfig.InstallCommand)
	r.command("source_config.build_command", spec.SourceConfig.BuildCommand)
	r.secrets(spec.Source, secrets)
	r.references(spec, secrets)
	r.canary(spec)
	return r.Err()
}

func (r *rules) github(spec Spec) {
	c := spec.SourceConfig
	if c.RepoURL == nil {
		r.Breaks("source_config.repo_url is required when source is github.")
	} else {
		r.repoURL(*c.RepoURL)
		if _, credentials := cutCredentials(*c.RepoURL); c.IntegrationID != nil && strings.Contains(credentials, ":") {
			r.Breaks("source_config.repo_url may not contain a password when there is a source_config.integration_id.")
		}
	}
	r.noControls("source_revision_config.repo_ref", spec.RevisionConfig.RepoRef)
	ref := spec.RevisionConfig.RepoRef
	if ref == nil || *ref == "" {
		r.Breaks("source_revision_config.repo_ref is required when source is github.")
		return
	}
	tag := strings.HasPrefix(*ref, "refs/tags/")
	if !tag && strings.HasPrefix(*ref, "refs/") {
		r.Breaks("source_revision_config.repo_ref must be a branch's bare name or a tag's full path (refs/tags/...), not %q.", *ref)
	}
	if rule := spec.noPushes(); rule != "" && c.BuildOnPush != nil && *c.BuildOnPush {
		r.Breaks("source_config.build_on_push %s.", rule)
	}
}

// noPushes returns the rule that build_on_push would break, "" if it may be set.
func (s Spec) noPushes() string {
	if ref := s.RevisionConfig.RepoRef; ref != nil && strings.HasPrefix(*ref, "refs/tags/") {
		return "must be false when source_revision_config.repo_ref is a tag (" + *ref + ")"
	}
	if _, ok := push.Repository(optional.Text(s.SourceConfig.RepoURL)); !ok {
		return "must be false when source_config.repo_url is not at a host that can report pushes"
	}
	return ""
}

func (r *rules) externalDocker(spec Spec) {
	if optional.Text(spec.RevisionConfig.ImageURI) == "" {
		r.Breaks("source_revision_config.image_uri is required when source is external_docker.")
	}
	if c := spec.SourceConfig; c.ListenerID == nil && c.ListenerConfig != nil && c.ListenerConfig.K8sNamespace != nil {
		r.Breaks("source_config.listener_config.k8s_namespace needs a source_config.listener_id.")
	}
	if size := len(spec.SourceConfig.ResourceSpec); size > maxResourceSpec {
		r.Breaks("source_config.resource_spec may take %d bytes as JSON; this takes %d.", maxResourceSpec, size)
	}
}

// maxResourceSpec is how many bytes a ResourceSpec may take: each revision stores it, and each
// reading of a deployment reads it.
const maxResourceSpec = 128 << 10

// repoSchemes are the transports by which a repository may be cloned.
var repoSchemes = []string{"https", "http", "ssh", "file"}

func (r *rules) repoURL(raw string) {
	if strings.ContainsFunc(raw, unicode.IsControl) {
		r.Breaks("source_config.repo_url may not hold control characters.")
		return
	}
	if scp := strings.Index(raw, ":"); scp > 0 && !strings.Contains(raw, "://") && strings.Contains(raw[:scp], "@") {
		return // user@host:path, ssh's short form
	}
	u, err := url.Parse(raw)
	if err != nil || !slices.Contains(repoSchemes, u.Scheme) || (u.Host == "" && (u.Scheme != "file" || u.Path == "")) {
		r.Breaks("source_config.repo_url must be the URL of a git repository (https, ssh or file).")
		return
	}
	// Git reads credentials line by line, as "user:password".
	if _, credentials := cutCredentials(raw); strings.ContainsFunc(credentials, unicode.IsControl) || strings.Contains(u.User.Username(), ":") {
		r.Breaks("source_config.repo_url has credentials that cannot be used: no control characters, and no colon in the user name.")
	}
}

// configPath refuses what can be no path in a repository, before the repository is cloned.
func (r *rules) configPath(path *string) {
	const field = "source_revision_config.framework_config_path"
	r.noControls(field, path)
	if path != nil && *path != "" && !filepath.IsLocal(*path) {
		r.Breaks("%s must be relative to the root of the repository, and stay in it, not %q.", field, *path)
	}
}

// noControls refuses control characters in a text that programs get as an argument, as a path or
// as an address.
func (r *rules) noControls(field string, text *string) {
	if text != nil && strings.ContainsFunc(*text, unicode.IsControl) {
		r.Breaks("%s may not hold control characters.", field)
	}
}

// shellMeta are the characters that a command may not contain: a shell runs the command.
const shellMeta = "'\"`\\\n\r\x00\t|;$<>"

func (r *rules) command(field string, command *string) {
	text := optional.Text(command)
	if strings.ContainsAny(text, shellMeta) || strings.Contains(strings.ReplaceAll(text, "&&", ""), "&") {
		r.Breaks("%s may not hold quotes, backslashes, line breaks, tabs or any of ` | ; $ < > &, except &&.", field)
	}
}

const (
	// maxSecrets is the largest total size of a deployment's secrets. Secrets Manager keeps
	// the environment of an agent as JSON of up to 64 KiB, and a part of this belongs to the
	// build and the platform.
	maxSecrets = workspacesecret.MaxSize
	// maxReferred is how many secrets of the workspace a deployment may refer to.
	maxReferred = 20
)

func (r *rules) secrets(source revision.Source, secrets []Secret) {
	seen := map[string]bool{}
	if size := len(record.Encode(valuesOf(secrets))); size > maxSecrets {
		r.Breaks("secrets may take %d bytes together, names and values as JSON; these take %d.", maxSecrets, size)
	}
	for i, secret := range secrets {
		r.variable(source, "secrets", i, secret.Name, seen)
		if secret.Value == Redacted {
			r.Breaks("secrets[%d].value of %s stands for a value that is not shown, and there is none. Send the value.", i, secret.Name)
		}
	}
}

// references checks the names of references to secrets. refer, or a listener in its cluster,
// checks that the secrets exist.
func (r *rules) references(spec Spec, secrets []Secret) {
	if referred := len(secretNames(spec.SecretReferences)); referred > maxReferred && spec.SourceConfig.ListenerID == nil {
		r.Breaks("secret_references may name %d secrets; these name %d.", maxReferred, referred)
	}
	seen := map[string]bool{}
	for _, secret := range secrets {
		seen[secret.Name] = true
	}
	for i, reference := range spec.SecretReferences {
		r.variable(spec.Source, "secret_references", i, reference.Name, seen)
	}
}

// variable checks the name of an environment variable, the i-th of a list, against the names
// that were seen before.
func (r *rules) variable(source revision.Source, list string, i int, name string, seen map[string]bool) {
	switch {
	case !environmentName.MatchString(name):
		r.Breaks("%s[%d].name %q is not the name of an environment variable: letters, digits and _, not beginning with a digit.", list, i, name)
	case reserved(source, name):
		r.Breaks("%s[%d].name %s is set by the platform.", list, i, name)
	case publicname.IsSetting(name):
		r.Breaks("%s[%d].name %s is not read here: %s.", list, i, name, publicname.Instead(name))
	case seen[name]:
		r.Breaks("%s[%d].name %s is given twice.", list, i, name)
	}
	seen[name] = true
}

// environmentName matches the name of an environment variable.
var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedNames are the environment variables that the platform sets, and no request.
var reservedNames = strings.Fields(`
	VENDOR_TRACING_V2 PLATFORM_TRACING_V2 VENDOR_ENDPOINT VENDOR_PROJECT PLATFORM_PROJECT PLATFORM_FRAMEWORK_GIT_REPO
	FRAMEWORK_GIT_REPO_PATH VENDOR_API_KEY PLATFORM_CONTROL_PLANE_API_KEY POSTGRES_URI POSTGRES_PASSWORD DATABASE_URI
	PLATFORM_FRAMEWORK_GIT_REF PLATFORM_FRAMEWORK_GIT_REF_SHA FRAMEWORK_AUTH_TYPE PLATFORM_AUTH_ENDPOINT PLATFORM_TENANT_ID
	PLATFORM_AUTH_VERIFY_TENANT_ID PLATFORM_HOST_PROJECT_ID PLATFORM_HOST_PROJECT_NAME PLATFORM_HOST_REVISION_ID LOG_JSON
	LOG_DICT_TRACEBACKS REDIS_URI VENDOR_CALLBACKS_BACKGROUND DD_TRACE_PSYCOPG_ENABLED DD_TRACE_REDIS_ENABLED
	PLATFORM_DEPLOYMENT_NAME FRAMEWORK_CLOUD_LICENSE_KEY FRAMEWORK_HOST_API_KEY PORT HOST`)

// machineNames are the variables that describe the machine on which an agent without its own
// image runs. The variables of a container belong to its image.
var machineNames = []string{"PATH", "HOME", "TMPDIR", "MOUNT_PREFIX"}

func reserved(source revision.Source, name string) bool {
	return slices.Contains(reservedNames, name) || strings.HasPrefix(name, "SLIPWAY_") || (!source.IsImage() && slices.Contains(machineNames, name))
}
