package framework

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// key is what the platform does with a key of the configuration file. Each key either works or is
// refused by its name: an agent is never served without something that its repository asks for.
type key struct {
	// refused says why a file with the key cannot be deployed, "" for a key that works.
	refused string
	// except are values, as JSON, that are accepted all the same, each with what the build log says
	// of it, "" for nothing. A value that is null, false or empty asks for nothing under any key.
	except map[string]string
	// remark is what the build log says of a key that has nothing to apply to here.
	remark string
	// language is the only one whose graphs the key is for, "" for all agents.
	language Language
	// offer is what the platform must offer for the key to work; elsewhere the key is refused.
	offer Offer
	// built keys are for the builder alone: a runtime in an image that was built elsewhere has
	// nothing to do with them.
	built bool
}

// Offer is a key of the configuration file that works where the platform offers it.
type Offer string

const (
	// OfferAuth is the repository's own authentication.
	OfferAuth Offer = "auth"
	// OfferHTTP are the repository's own routes and HTTP settings.
	OfferHTTP Offer = "http"
	// OfferTTL are times to live of threads and of the store's items.
	OfferTTL Offer = "ttl"
)

// ownDistribution is what there is to say of a distribution that an image is not made of.
const ownDistribution = "the distribution is not used: agents run on the server itself, or in images that are made from the platform's own base image, a Debian"

// keys are those of the public format and of ours. A key that begins to work loses its refusal
// here, and begins to be in the runtimes' own lists.
var keys = map[string]key{
	"$schema":        {},
	"graphs":         {},
	"env":            {},
	"build":          {},
	"start":          {},
	"dependencies":   {},
	"python_version": {language: Python},
	"node_version":   {language: Node},
	"api_version":    {remark: "the release is not used: agents are served by this platform, which has no releases of that server"},

	"source":           {language: Python},
	"pip_config_file":  {refused: "settings of pip are not used yet", language: Python, built: true},
	"pip_installer":    {refused: "packages are installed by uv alone", except: map[string]string{`"auto"`: "", `"uv"`: ""}, language: Python, built: true},
	"keep_pkg_tools":   {refused: "package tools cannot be chosen yet", language: Python, built: true},
	"dockerfile_lines": {refused: "lines of a Dockerfile are not used yet", built: true},
	"base_image":       {refused: "the base image cannot be chosen yet", built: true},
	"image_distro": {refused: `must be "debian", "bookworm" or "wolfi"`, built: true,
		except: map[string]string{`"debian"`: "", `"bookworm"`: ownDistribution, `"wolfi"`: ownDistribution}},

	"auth":         {refused: "the repository's own authentication is not run here, and its agent is not served without it", offer: OfferAuth, language: Python},
	"encryption":   {refused: "the repository's own encryption is not run yet, and its agent is not served without it"},
	"http":         {refused: "the repository's own routes and HTTP settings are served on one machine only: behind this platform's gateway requests reach no agent", offer: OfferHTTP},
	"store":        {refused: "the store takes settings from a repository on one machine only; TTLs can be given with each item", offer: OfferTTL},
	"checkpointer": {refused: "checkpoints take settings from a repository on one machine only; a TTL can be given with each thread", offer: OfferTTL},
	"webhooks":     {refused: "webhooks take no settings from a repository yet"},
	"ui":           {refused: "components of a user interface are not built yet"},
	"ui_config":    {refused: "components of a user interface are not built yet"},
}

// graphKeys are those of a graph that is an object.
var graphKeys = []string{"description", "path"}

// maxDescriptions is how many bytes the descriptions of all graphs may take: each request reads
// them.
const maxDescriptions = 16 << 10

// keys refuses what the platform does not do, by name.
func (p *parser) keys() {
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		known, ok := keys[name]
		remark, accepted := known.except[string(p.fields[name])]
		switch {
		case !ok:
			p.problem("%s: is not a key of the configuration file", name)
		case !asks(p.fields[name]):
		case accepted:
			p.remark(name, remark)
		case known.refused != "" && !p.offered(known):
			p.problem("%s: %s", name, known.refused)
		case known.language != "" && known.language != p.config.Language && (len(p.config.files) > 0 || known.offer != ""):
			p.problem("%s: is only for graphs that the %s runtime hosts", name, known.language)
		default:
			p.remark(name, known.remark)
		}
	}
}

// offered tells whether the platform offers a key that is refused elsewhere.
func (p *parser) offered(known key) bool {
	return known.offer != "" && slices.Contains(p.offers, known.offer)
}

// remark has the build log say something of a key.
func (p *parser) remark(name, text string) {
	if text != "" {
		p.config.Remarks = append(p.config.Remarks, name+": "+text)
	}
}

// ownDirectory refuses the dependencies of a repository whose packages the configuration file does
// not name: those of JavaScript are in package.json, and a start command brings its own.
func (p *parser) ownDirectory() {
	if !p.has("dependencies") {
		return
	}
	var wanted []string
	if json.Unmarshal(p.fields["dependencies"], &wanted) != nil || slices.ContainsFunc(wanted, func(d string) bool { return filepath.Clean(d) != "." }) {
		p.problem(`dependencies: may only be ["."] where the platform installs no Python packages: a JavaScript repository names its packages in package.json, and the build command of one with a start command installs them`)
	}
}

// graphKeys refuses what the platform does not know of a graph that is an object.
func (p *parser) graphKeys(id string, value json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(graphKeys, name) && asks(fields[name]) {
			p.problem("graphs.%s.%s: is not a key of a graph", id, name)
		}
	}
	p.description(id, fields["description"])
}

// description takes what a graph is for, which its assistant tells.
func (p *parser) description(id string, value json.RawMessage) {
	var text string
	if len(value) == 0 || !asks(value) {
		return
	}
	if json.Unmarshal(value, &text) != nil {
		p.problem("graphs.%s.description: must be a string", id)
		return
	}
	if p.config.Descriptions == nil {
		p.config.Descriptions = map[string]string{}
	}
	p.config.Descriptions[id] = text
	size := 0
	for _, text := range p.config.Descriptions {
		size += len(text)
	}
	if size > maxDescriptions {
		p.problem("graphs.%s.description: all descriptions together may take %d bytes", id, maxDescriptions)
	}
}

// asks reports whether a value asks for anything.
func asks(value json.RawMessage) bool {
	var anything any
	if json.Unmarshal(value, &anything) != nil {
		return true
	}
	switch v := anything.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return strings.TrimSpace(v) != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
