package framework

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// key describes the platform's treatment of a key of the configuration file. Each key of the
// public format either works or is refused by its name: an agent is never served without something
// that its repository asks for. A key that no format has asks for nothing, as on the public
// service, and the build log names it.
type key struct {
	// refused is the reason why a file with the key cannot be deployed, "" for a key that
	// works.
	refused string
	// except are values, as JSON, that are accepted although the key is refused, each with its
	// text in the build log, "" for no text. A value that is null, false or empty asks for
	// nothing under any key.
	except map[string]string
	// remark is the text in the build log about a key that has no effect here.
	remark string
	// language is the only language whose graphs the key is for, "" for all agents. Beside other
	// graphs the key is refused, with the remedy, unless there is a text for the build log.
	language       Language
	remedy, beside string
	// read keys count because the builder has read them: a runtime in an image that was built
	// elsewhere refuses them, and so does an agent with a start command of its own if they are for
	// one language.
	read bool
	// offer is the Offer that the platform must have for the key to work. Elsewhere the key is
	// refused.
	offer Offer
}

// Offer is a key of the configuration file that works if the platform offers it.
type Offer string

const (
	// OfferEncryption is the repository's own encryption. A stack on AWS does not offer it.
	OfferEncryption Offer = "encryption"
	// OfferLines are instructions for the Dockerfile of the agent's image. Builders that make
	// images offer it.
	OfferLines Offer = "dockerfile_lines"
)

// ownDistribution is the remark about a distribution that images are not made from.
const ownDistribution = "the distribution is not used: agents run on the server itself, or in images that are made from the platform's own base image, a Debian"

// noReleases is the remark about keys that name a release of the public server.
const noReleases = "the release is not used: agents are served by this platform, which has no releases of that server"

// noImage is the reason why instructions of a Dockerfile are refused.
const noImage = "they count only where images are built: on AWS, or with `serve --build-images`. Here agents run as processes of the server: install on its machine what the instructions install, and deploy a configuration file without the key, or deploy an image (source external_docker)"

// keys are the keys of the public format and of the platform's own format. When a key begins
// to work, its refusal is removed here, and the key is added to the runtimes' own lists.
var keys = map[string]key{
	"$schema":        {},
	"graphs":         {},
	"env":            {},
	"build":          {},
	"start":          {},
	"dependencies":   {},
	"python_version": {language: Python, beside: "has no effect beside JavaScript graphs"},
	"node_version":   {language: Node, remedy: ". Remove it: a Python agent that starts programs of Node finds those of the server's machine, and in images those that dockerfile_lines installs"},
	"api_version":    {remark: noReleases},

	"docker_compose_file":  {remark: "only the public command line reads it, for its command up"},
	"node_loader":          {remark: "only the framework's development server reads it: a deployed graph is loaded as on the public service"},
	"_INTERNAL_docker_tag": {remark: noReleases},
	"project_root":         {refused: "was a key of earlier releases of the public format: use source.root"},
	"package":              {refused: "was a key of earlier releases of the public format: use source.package"},

	"source":           {language: Python},
	"pip_config_file":  {language: Python},
	"pip_installer":    {refused: "packages are installed by uv alone: remove the key", except: map[string]string{`"auto"`: "", `"uv"`: ""}, language: Python},
	"package_manager":  {refused: "packages are installed by uv alone: remove the key", except: map[string]string{`"auto"`: "", `"uv"`: ""}, language: Python},
	"keep_pkg_tools":   {language: Python},
	"dockerfile_lines": {refused: noImage, offer: OfferLines},
	"base_image":       {},
	"image_distro": {refused: `must be "debian", "bookworm" or "wolfi"`,
		except: map[string]string{`"debian"`: "", `"bookworm"`: ownDistribution, `"wolfi"`: ownDistribution}},

	"auth":         {read: true},
	"encryption":   {refused: publicname.NoEncryption, offer: OfferEncryption, language: Python, read: true},
	"priority":     {refused: "runs have no priorities here, those that wait start in the order of their requests: remove the key, and have runs that must not wait for others in a deployment of their own"},
	"http":         {read: true},
	"store":        {read: true},
	"checkpointer": {read: true},
	"webhooks":     {read: true},
	"ui":           {language: Node, read: true},
	"ui_config":    {language: Node, read: true},
}

// graphKeys are the keys of a graph that is an object.
var graphKeys = []string{"description", "path"}

// maxDescriptions is how many bytes the descriptions of all graphs may take: each request reads
// them.
const maxDescriptions = 16 << 10

// maxSettings is how many bytes the settings of the agent server may take, as JSON: each request
// reads them. CodeBuild documents no limit for a variable that a build returns, and Linux allows
// 128 KiB.
const maxSettings = 16 << 10

// maxStart is how many bytes what starts the agent may take, as JSON: a revision stores it, and
// Linux passes no longer argument or variable to a program.
const maxStart = 128 << 10

// size bounds the settings and what starts the agent, and names the key with the longest value.
func (p *parser) size() {
	start, err := json.Marshal([]any{p.config.Graphs, p.config.Start, p.config.Build, p.config.Env})
	if err != nil || len(start) > maxStart {
		p.problem("%s: graphs, start, build and env take %d bytes together, and may take %d", p.longest("graphs", "start", "build", "env"), len(start), maxStart)
	}
	settings, err := json.Marshal(p.config.Settings)
	size := len(settings) + len(p.config.Auth)
	if err == nil && size <= maxSettings {
		return
	}
	p.problem("%s: the settings of auth, checkpointer, http, store, ui and webhooks take %d bytes together, and may take %d",
		p.longest(append(p.config.Settings.Keys(), "auth")...), size, maxSettings)
}

func (p *parser) longest(keys ...string) string {
	return slices.MaxFunc(keys, func(a, b string) int { return cmp.Compare(len(p.fields[a]), len(p.fields[b])) })
}

// keys refuses, by name, the keys that the platform does not support, and remarks on those that
// are not keys. A key in other letters than its own, or with spaces around it, is refused: a
// repository with "Auth" would be served without its authentication.
func (p *parser) keys() {
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		known, ok := keys[name]
		remark, accepted := known.except[string(p.fields[name])]
		switch {
		case !ok:
			p.unknown(name)
		case !asks(p.fields[name]):
		case accepted:
			p.remark(name, remark)
		case known.refused != "" && !slices.Contains(p.offers, known.offer):
			p.problem("%s: %s", name, known.refused)
		case known.language != "" && known.language != p.config.Language && (known.read || len(p.config.files) > 0):
			p.besideOthers(name, known)
		default:
			p.remark(name, known.remark)
		}
	}
}

// besideOthers reads a key that is for graphs in another language.
func (p *parser) besideOthers(name string, known key) {
	if known.beside != "" && p.config.Language != "" {
		p.remark(name, known.beside)
		return
	}
	p.problem("%s: is only for graphs that the %s runtime hosts%s", name, known.language, known.remedy)
}

// unknown refuses a name that is not a key if it was probably meant to be a key. Otherwise it
// remarks on the name.
func (p *parser) unknown(name string) {
	protection := ""
	if asks(p.fields[name]) {
		protection = meant(name)
	}
	switch key := inOtherLetters(name); {
	case key != "":
		p.problem("%s: is not a key of the configuration file, did you mean %q?", name, key)
	case protection != "":
		p.problem("%s: is not a key of the configuration file, and the agent is not served without what it may ask for. Did you mean %q? Otherwise remove it.", name, protection)
	default:
		p.remark(name, "is not a key of the configuration file, and has no effect")
	}
}

// inOtherLetters returns the key that differs from a name only in upper and lower case and in
// spaces around it, or "".
func inOtherLetters(name string) string {
	for known := range keys {
		if strings.EqualFold(strings.TrimSpace(name), known) {
			return known
		}
	}
	return ""
}

// remark adds a remark about a key to the build log.
func (p *parser) remark(name, text string) {
	if text != "" {
		p.config.Remarks = append(p.config.Remarks, name+": "+text)
	}
}

// ownDirectory refuses the dependencies of a repository whose packages the configuration file
// does not name: JavaScript packages are named in package.json, and a repository with a start
// command brings its own packages. Directories beside JavaScript graphs ask for nothing, as on the
// public service: a workspace of packages names its members in package.json, too.
func (p *parser) ownDirectory() {
	if !p.has("dependencies") {
		return
	}
	var wanted []string
	err := json.Unmarshal(p.fields["dependencies"], &wanted)
	others := slices.DeleteFunc(wanted, func(dependency string) bool { return filepath.Clean(dependency) == "." })
	switch directories := !slices.ContainsFunc(others, func(dependency string) bool { return !isDirectory(dependency) }); {
	case err == nil && len(others) == 0:
	case err == nil && directories && p.config.Language == Node:
		p.remark("dependencies", fmt.Sprintf("nothing is installed for %s: a JavaScript repository names its packages in package.json", quoted(others)))
	default:
		p.problem(`dependencies: may only be ["."] where the platform installs no Python packages: a JavaScript repository names its packages in package.json, and the build command of one with a start command installs them`)
	}
}

// graphKeys remarks on the keys that the platform does not know in a graph that is an object, and
// refuses those that were probably meant to protect it.
func (p *parser) graphKeys(id string, value json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch protection := meant(name); {
		case slices.Contains(graphKeys, name) || !asks(fields[name]):
		case protection != "":
			p.problem("graphs.%s.%s: is not a key of a graph, and the graph is not served without what it may ask for: %q is a key beside \"graphs\"", id, name, protection)
		default:
			p.remark("graphs."+id+"."+name, "is not a key of a graph, and has no effect")
		}
	}
	p.description(id, fields["description"])
}

// description reads the description of a graph, which the graph's assistant shows.
func (p *parser) description(id string, value json.RawMessage) {
	var text string
	if !asks(value) {
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

// asks reports whether a value asks for anything. A value that is not there asks for nothing.
func asks(value json.RawMessage) bool {
	text := strings.Join(strings.Fields(string(value)), "")
	return !slices.Contains([]string{"", "null", "false", `""`, "[]", "{}"}, text)
}
