package revision

import (
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Diagnosis says why a revision failed, as far as its reason, its message and its log show.
type Diagnosis struct {
	// Cause is a sentence. Evidence are the lines that prove it. Remedy says what to change,
	// "" when the remedy is not known.
	Cause    string
	Evidence []string
	Remedy   string
}

// mistake is a mistake that people make often.
type mistake struct {
	// reasons are the reasons of revisions that may have this mistake, nil for any reason.
	reasons []string
	// graphs means that only agents can have this mistake whose graphs a runtime serves.
	graphs bool
	// sign matches a line of the message or of the log, nil if the reason alone suffices.
	sign *regexp.Regexp
	// cause and remedy may name parts of the sign, as $1.
	cause, remedy string
}

// said matches the beginning of the line of a runtime about a graph that cannot be loaded.
const said = `(?:graph ['"][^'"]*['"]: )?`

// variable matches the name of an environment variable in a sentence.
const variable = `\b([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])\b`

// fitting is the remedy for installed releases that do not fit each other.
const fitting = `Pin releases that fit each other in the dependencies, as PACKAGE==RELEASE. A uv.lock that has them is used if the configuration file has "source": {"kind": "uv"} in place of "dependencies".`

// mistakes are tried in this order: a mistake that a line of text proves comes before a mistake
// that the reason only suggests.
var mistakes = []mistake{
	{
		reasons: []string{build.ReasonRefNotFound}, sign: regexp.MustCompile(`does not give out the commit (\w+)`),
		cause: "The repository does not have the commit $1 any more.", remedy: "Push a branch that contains it, or deploy a branch: slipway deploy --repo URL --ref BRANCH.",
	},
	{reasons: []string{build.ReasonRefNotFound}, cause: "The branch or tag does not exist.", remedy: "Push it, or deploy another: slipway deploy --repo URL --ref BRANCH (a tag as refs/tags/NAME)."},
	{reasons: []string{build.ReasonConfigNotFound}, cause: "The framework configuration file is not where it was looked for.", remedy: "Add the file (slipway new shows one), or say where it is: slipway deploy --config PATH."},
	{
		sign:  regexp.MustCompile(`cannot import name '([^']+)' from '([^']+)' \(\S*site-packages`),
		cause: "The installed release of $2 has no $1.", remedy: fitting,
	},
	{
		sign:  regexp.MustCompile(`The requested module '(@[^'/]+/[^']+|[a-zA-Z][^']*)' does not provide an export named '([^']+)'`),
		cause: "The installed release of $1 has no $2.", remedy: "Make the lock file anew with releases that fit each other, and deploy it.",
	},
	{
		sign:  regexp.MustCompile(`, in the import of (\S+): (?:ModuleNotFoundError: No module named '[^'.]+\.|(?:TypeError|AttributeError|NameError|ImportError): )`),
		cause: "The installed module $1 cannot be imported.", remedy: fitting,
	},
	{sign: regexp.MustCompile(said + `(\S+, line \d+): (?:SyntaxError|IndentationError|TabError): (.*)`), cause: "$1 cannot be read: $2.", remedy: "Correct that line."},
	{sign: regexp.MustCompile(`^(\S+\.go:\d+):\d+: (.*)`), cause: "$1 does not compile: $2.", remedy: "Correct that line."},
	{
		sign:   regexp.MustCompile(`ModuleNotFoundError: No module named '([a-z]+graph_(?:api|license|runtime)\w*)`),
		cause:  "The module $1 belongs to the public service's own server, which does not run agents here.",
		remedy: "Remove the import. The client package has get_client() and Auth, and the config module of the framework has get_config() and get_store().",
	},
	{
		sign: regexp.MustCompile(`ModuleNotFoundError: No module named '([^'.]+)`), cause: "The Python module $1 is not installed.",
		remedy: `Add the package that has $1 to the requirements.txt or pyproject.toml of a directory that "dependencies" names in the configuration file.`,
	},
	{
		sign:  regexp.MustCompile(`(?:Cannot find (?:package|module)|there is no file) ['"]([^'"]*\b(?:dist|build|lib|out)/[^'"]+\.[cm]?js)['"]`),
		cause: "The file $1 is not in the repository, and no command of the build has made it.", remedy: "Set source_config.build_command of the deployment to the command that makes it, such as npm run build.",
	},
	{sign: regexp.MustCompile(`Cannot find (?:package|module) '([^']+)'`), cause: "The package $1 is not installed.", remedy: "Add $1 to the dependencies of package.json, and install, so that the lock file has it too."},
	{
		sign:  regexp.MustCompile(variable + ` Field required \[type=missing`),
		cause: "The variable $1 is not set.", remedy: "Deploy the secret: slipway deploy --secret $1.",
	},
	{
		sign:  regexp.MustCompile(`KeyError: '?([A-Z][A-Z0-9_]*[A-Z0-9])'?$|(?i:the environment variable|missing secret|api key) [^A-Z]*([A-Z][A-Z0-9_]*_[A-Z0-9_]+)`),
		cause: "The variable $1$2 is not set.", remedy: "Deploy the secret: slipway deploy --secret $1$2.",
	},
	{
		reasons: []string{compute.ReasonStartFailed, compute.ReasonEnded},
		sign: regexp.MustCompile(`(?:Error|Exception): .*?(?:\b(?i:missing\b.*?|(?:set|provide|define|export|configure) (?:the |an? |your )?(?:environment variables? )?)[^\w\s]?` + variable +
			`|` + variable + `\S? (?i:environment variable )?(?i:(?:is|are|was|must be|has to be|not) )+(?i:set|defined|missing|required|configured|provided|found)\b|` + variable + `\S? ?(?:未设置|未配置))`),
		cause: "The variable $1$2$3 is not set.", remedy: "Deploy the secret: slipway deploy --secret $1$2$3.",
	},
	{reasons: []string{ReasonSecretMissing}, cause: "A secret of the workspace that the deployment refers to does not exist.", remedy: "Make the secret, or take the reference away."},
	{
		sign:  regexp.MustCompile(said + `(there is no file ['"][^'"]+['"]|\S+ has no (?:variable|export) ['"][^'"]+['"])`),
		cause: "The path of a graph is wrong: $1.", remedy: `Correct the path under "graphs" in the configuration file, which is FILE:NAME.`,
	},
	{
		sign:  regexp.MustCompile(`Because (\S+) was not found in the package registry|No matching distribution found for (\S+)|The requested resource '([^']+)@[^'@]*' could not be found|there is no version of (\S+)|(?:ERR_PNPM_FETCH_404|^error:)\W+GET https?://[^/]+/(\S+\.tgz)\b.* 404\b`),
		cause: "There is no package $1$2$3$4$5.", remedy: "Correct its name and version in the dependencies, or name the registry that has it.",
	},
	{
		sign:  regexp.MustCompile(`\bslipway-runtime\b.*?\b([\w-]+>=[\w.]+(?:,<[\w.]+)?)`),
		cause: "The dependencies exclude all releases that the runtime of the graphs needs: $1.", remedy: "Allow such a release in the dependencies.",
	},
	{
		sign:  regexp.MustCompile(`Multiple top-level (?:packages|modules) discovered in a flat-layout: (\[.*\])`),
		cause: "The build of the repository's package does not know which of $1 belong to it.", remedy: "Name them in pyproject.toml, as packages or py-modules of [tool.setuptools].",
	},
	{
		sign:  regexp.MustCompile(`the current Python version \(([\d.]+)\) does not satisfy (Python[^ ]+)`),
		cause: "Python $1 is used, and a package needs $2.", remedy: "Name a version that all packages admit as python_version in the configuration file.",
	},
	{
		sign:  regexp.MustCompile(`(npm ci.*can only install.*in sync|ERR_PNPM_OUTDATED_LOCKFILE|lockfile.*(?:out.of.date|needs to be updated)|ResolutionImpossible|conflicting dependencies|ERESOLVE|No solution found)`),
		cause: "The versions of the dependencies contradict each other: $1.", remedy: "Resolve them on your machine, and deploy the lock file that comes of it.",
	},
	{
		reasons: []string{build.ReasonRuntimeMissing}, sign: regexp.MustCompile(`Failed to download \S*/cpython-(\d+\.\d+)`),
		cause: "Python $1 is not on the server's machine, and the machine cannot download it.", remedy: "Name a version that the machine has as python_version in the configuration file, or install Python $1 in the server's $$PATH, where every user may read it.",
	},
	{reasons: []string{build.ReasonRuntimeMissing}, sign: regexp.MustCompile(`^(node_version asks for .+?)\.?$`), cause: "$1.", remedy: "Name a version that the machine has, or install the version in the server's $$PATH, where every user may read it."},
	{reasons: []string{build.ReasonDependenciesFailed}, cause: "The dependencies cannot be installed.", remedy: "Install them on your machine from an empty directory, and correct what fails."},
	{reasons: []string{build.ReasonOutOfMemory}, cause: "The memory did not suffice.", remedy: "Use less, or give more: source_config.resource_spec of a deployment of the source external_docker, else compute_tier by PATCH /v2/deployments/{deployment_id}/resource-tiers."},
	{sign: regexp.MustCompile(said + `((?:\S+, line \d+: )?\w*(?:Error|Exception): .*)`), reasons: []string{compute.ReasonStartFailed, compute.ReasonEnded}, cause: "The agent ends when it is started: $1.", remedy: "Correct what that line says."},
	{sign: regexp.MustCompile(`^graph ['"][^'"]*['"]: (.+?)\.?$`), reasons: []string{compute.ReasonStartFailed, compute.ReasonEnded}, cause: "The agent ends when it is started: $1.", remedy: "Correct what that line says."},
	{reasons: []string{compute.ReasonStartFailed, compute.ReasonEnded}, cause: "The agent ends when it is started.", remedy: "Start it on your machine with the same command: its last output says why."},
	{
		reasons: []string{compute.ReasonNotReady}, graphs: true, cause: "The graphs of the agent were not loaded in time.",
		remedy: "Move slow work from the import of a graph's file into a node, or set readiness_timeout_seconds of the deployment.",
	},
	{reasons: []string{compute.ReasonNotReady}, cause: "The agent was started, and never answered GET /ping.", remedy: "Listen on $HOST:$PORT before anything slow, or set readiness_timeout_seconds of the deployment."},
	{reasons: []string{build.ReasonBuildCommandFailed}, cause: "The build command failed.", remedy: "Run it on your machine in an empty copy of the sources."},
}

// Diagnose finds the first mistake that fits a failed revision and the last lines of its log. If no
// mistake fits, the cause is the revision's own message.
func Diagnose(r Revision, log []string) Diagnosis {
	lines := slices.Concat(strings.Split(r.Message, "\n"), log)
	for _, m := range mistakes {
		if len(m.reasons) > 0 && !slices.Contains(m.reasons, r.Reason) || m.graphs && (r.Build == nil || r.Build.Language == "") {
			continue
		}
		if m.sign == nil {
			return Diagnosis{Cause: m.cause, Evidence: summary(r.Message, log), Remedy: m.remedy}
		}
		for _, line := range lines {
			if at := m.sign.FindStringSubmatchIndex(line); at != nil {
				expand := func(template string) string { return string(m.sign.ExpandString(nil, template, line, at)) }
				return Diagnosis{Cause: expand(m.cause), Evidence: []string{strings.TrimSpace(line)}, Remedy: expand(m.remedy)}
			}
		}
	}
	return Diagnosis{Cause: strings.TrimSpace(lines[0]), Evidence: nonEmpty(lines[1:min(len(lines), 5)])}
}

// summary returns the first line of a message, and the last ones: commands name their failure at
// the end. The log counts only if the message has a single line.
func summary(message string, log []string) []string {
	lines := nonEmpty(strings.Split(message, "\n"))
	if len(lines) < 2 {
		printed := nonEmpty(log)
		return append(lines, printed[max(0, len(printed)-4):]...)
	}
	return slices.Concat(lines[:1], lines[max(1, len(lines)-4):])
}

func nonEmpty(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.TrimSpace(line) == "" })
}
