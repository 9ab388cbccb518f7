package deployment

import (
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/control/revision"
)

// member is a member of a deployment that not every source has.
type member struct {
	name    string
	sources []revision.Source
	// set reports whether the member has a value.
	set func(Spec) bool
}

var (
	ofGit   = []revision.Source{revision.GitHub}
	ofImage = []revision.Source{revision.ExternalDocker}
	// ofSized get their size from the deployment's type, ofBuilt are built here.
	ofSized = []revision.Source{revision.GitHub, revision.InternalDocker, revision.InternalSource}
	ofBuilt = []revision.Source{revision.GitHub, revision.InternalSource}
)

// members says which member applies to which sources.
var members = []member{
	{"source_config.integration_id", ofGit, func(s Spec) bool { return s.SourceConfig.IntegrationID != nil }},
	{"source_config.repo_url", ofGit, func(s Spec) bool { return s.SourceConfig.RepoURL != nil }},
	{"source_config.deployment_type", ofSized, func(s Spec) bool { return s.SourceConfig.DeploymentType != nil }},
	{"source_config.build_on_push", ofGit, func(s Spec) bool { return s.SourceConfig.BuildOnPush != nil }},
	{"source_config.custom_url", ofImage, func(s Spec) bool { return s.SourceConfig.CustomURL != nil }},
	{"source_config.resource_spec", ofImage, func(s Spec) bool { return s.SourceConfig.ResourceSpec != nil }},
	{"source_config.listener_id", ofImage, func(s Spec) bool { return s.SourceConfig.ListenerID != nil }},
	{"source_config.listener_config", ofImage, func(s Spec) bool { return s.SourceConfig.ListenerConfig != nil }},
	{"source_config.install_command", ofBuilt, func(s Spec) bool { return s.SourceConfig.InstallCommand != nil }},
	{"source_config.build_command", ofBuilt, func(s Spec) bool { return s.SourceConfig.BuildCommand != nil }},
	{"source_revision_config.repo_ref", ofGit, func(s Spec) bool { return s.RevisionConfig.RepoRef != nil }},
	{"source_revision_config.framework_config_path", ofBuilt, func(s Spec) bool { return s.RevisionConfig.ConfigPath != nil }},
	{"source_revision_config.image_uri", []revision.Source{revision.ExternalDocker, revision.InternalDocker}, func(s Spec) bool { return s.RevisionConfig.ImageURI != nil }},
	{"source_revision_config.source_tarball_path", []revision.Source{revision.InternalSource}, func(s Spec) bool { return s.RevisionConfig.TarballPath != nil }},
}

// members refuses members that apply only to other sources.
func (r *rules) members(spec Spec) {
	for _, m := range members {
		if m.set(spec) && !slices.Contains(m.sources, spec.Source) {
			r.Breaks("%s applies to source %s only.", m.name, anyOf(m.sources))
		}
	}
}

// anyOf returns a list in words.
func anyOf(sources []revision.Source) string {
	words := make([]string, len(sources))
	for i, source := range sources {
		words[i] = string(source)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// hasSource reports whether there is a source from which a revision can be made.
func (s Spec) hasSource() bool { return s.missingSource() == "" }

// missingSource names the member without which no revision can be made, "" if it is there: an
// upload or a pushed image comes only after the deployment was created.
func (s Spec) missingSource() string {
	switch {
	case s.Source == revision.InternalSource && s.RevisionConfig.TarballPath == nil:
		return "source_revision_config.source_tarball_path"
	case s.Source == revision.InternalDocker && s.RevisionConfig.ImageURI == nil:
		return "source_revision_config.image_uri"
	}
	return ""
}
