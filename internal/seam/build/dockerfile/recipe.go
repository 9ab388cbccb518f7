package dockerfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/infra/runtimes"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// Bases are the images that agents' images are made from.
type Bases struct {
	// Registry has the official images of the languages (docker.io/library).
	Registry string
	// Other is for agents in any other language (debian:13-slim of the registry).
	Other string
}

const (
	defaultRegistry = "docker.io/library"
	// What a repository gets that names no version.
	defaultPython, defaultNode = "3.13", "22"
)

// of is the image for a configuration.
func (b Bases) of(config framework.Config) string {
	registry := strings.TrimSuffix(cmp.Or(b.Registry, defaultRegistry), "/")
	switch config.Language {
	case framework.Python:
		return registry + "/python:" + cmp.Or(config.Version, defaultPython) + "-slim"
	case framework.Node:
		return registry + "/node:" + cmp.Or(config.Version, defaultNode) + "-slim"
	}
	return cmp.Or(b.Other, registry+"/debian:13-slim")
}

// recordOf is what is known of an image before its dependencies are.
func recordOf(config framework.Config, base string) build.Record {
	record := build.NewRecord(string(config.Language))
	record.Base = base
	switch config.Language {
	case framework.Python:
		record.LanguageVersion = cmp.Or(config.Version, defaultPython)
	case framework.Node:
		record.LanguageVersion = cmp.Or(config.Version, defaultNode)
	}
	return record
}

// pinnedBy notes that the dependencies are those of a lock file of the tree.
func (r *recipe) pinnedBy(lock string) error {
	text, err := r.source.Tree.ReadFile(lock)
	if err != nil {
		return err
	}
	r.Record.Dependencies = build.Digest(text)
	return nil
}

// Source is a commit to make an image of.
type Source struct {
	// Tree is where the commit is checked out. It is only read.
	Tree   *os.Root
	Config framework.Config
	// URL is the repository's address; credentials in it are left out.
	URL, Commit string
	Committed   time.Time
	// Workspace, Deployment and Revision are for labels.
	Workspace, Deployment, Revision string
	// InstallCommand and BuildCommand are those of build.Spec.
	InstallCommand, BuildCommand string
}

// Recipe is a Dockerfile and what it needs.
type Recipe struct {
	// Base is the image that it starts from.
	Base string
	// Dockerfile is the text. Steps has one entry for each instruction in it, as builders count
	// them.
	Dockerfile string
	Steps      []Step
	// Files are the files of the build's context, by their paths. The context also has the tree,
	// without .git, as the directory Tree.
	Files map[string]string
	// Record is what the image is made with, apart from the image.
	Record build.Record
}

// Tree is where a recipe's context has the repository. As it is a directory of the context, no
// .dockerignore of the repository has a say in what is copied.
const Tree = "app"

// Step is an instruction whose failure the repository is to blame for; the zero Step is one of the
// platform.
type Step struct {
	// What it does ("the install command"), and the reason of its failure.
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// StepError is the failure of a step that is not the platform's.
type StepError struct {
	Step
	// Code is the exit code.
	Code int
}

func (e *StepError) Error() string { return e.What + fmt.Sprintf(" exited with code %d", e.Code) }

// killed is the exit code of a step that was killed, which engines do when it uses more memory than
// it may.
const killed = 137

// Failure is the end of the build, with what the step has printed last.
func (e *StepError) Failure(said string) *build.Failure {
	if e.Code == killed {
		return build.Fail(build.ReasonOutOfMemory, "%s was killed, as is done with what uses more memory than a build may. %s", e.What, said)
	}
	return build.Fail(e.Reason, "%v. %s", e, said)
}

// Places in the image.
const (
	agentDir   = "/opt/agent"
	slipwayDir = "/opt/slipway"
	// owner is whom the agent runs as, and all that it has belongs to.
	owner = "10001:10001"
	// SBOM is where the list of what was installed is, in CycloneDX's JSON.
	SBOM = slipwayDir + "/sbom.cdx.json"
)

// recipe is a Recipe in the making.
type recipe struct {
	source Source
	text   strings.Builder
	Recipe
}

// Make makes the recipe of a commit. What is wrong with the repository is a build.Failure.
func Make(source Source, bases Bases) (Recipe, error) {
	base := bases.of(source.Config)
	r := &recipe{source: source, Recipe: Recipe{Base: base, Files: map[string]string{}, Record: recordOf(source.Config, base)}}
	err := r.write()
	r.Dockerfile = r.text.String()
	return r.Recipe, err
}

func (r *recipe) write() error {
	config := r.source.Config
	if err := plain(config.Dir, config.File); err != nil {
		return err
	}
	r.text.WriteString("# Made from " + config.File + " by Slipway.\n")
	r.add("FROM " + r.Base)
	var start []string
	var err error
	switch config.Language {
	case framework.Python:
		start, err = r.python()
	case framework.Node:
		start, err = r.node()
	default:
		start = config.Start
		r.copy(Tree, agentDir)
		r.add("USER " + owner)
	}
	if err != nil {
		return err
	}
	return r.finish(start)
}

// add writes an instruction of the platform.
func (r *recipe) add(instruction string) { r.step(Step{}, instruction) }

func (r *recipe) step(step Step, instruction string) {
	r.text.WriteString(instruction + "\n")
	r.Steps = append(r.Steps, step)
}

// copy gives a part of the context to the agent's user.
func (r *recipe) copy(from, to string) { r.add("COPY --chown=" + owner + " " + from + " " + to) }

// run runs commands one after the other, with a home that is gone afterwards.
func (r *recipe) run(step Step, commands ...string) {
	commands = slices.Concat([]string{"export HOME=/tmp/build CI=true", "mkdir -p /tmp/build"}, commands, []string{"rm -rf /tmp/build"})
	r.step(step, "RUN "+strings.Join(commands, " \\\n && "))
}

// prepare makes the directories of the agent's user, runs the platform's commands as root, and is
// that user from then on.
func (r *recipe) prepare(commands ...string) error {
	directories := fmt.Sprintf("mkdir -p %s %s && chown %s %[1]s %[2]s", agentDir, slipwayDir, owner)
	r.step(Step{"the preparation of the base image", build.ReasonRuntimeMissing}, "RUN "+strings.Join(append([]string{directories}, commands...), " \\\n && "))
	r.add("USER " + owner)
	name := string(r.source.Config.Language)
	files, err := fs.Sub(runtimes.Files, name)
	if err != nil {
		return err
	}
	r.copy("runtime", slipwayDir+"/runtime")
	return fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, file)
		r.Files[path.Join("runtime", file)] = string(text)
		return err
	})
}

// manifests copies files of the tree to where the tree will be.
func (r *recipe) manifests(files []string) error {
	for _, file := range files {
		text, err := r.source.Tree.ReadFile(file)
		if err != nil {
			return err
		}
		r.Files[path.Join("manifests", file)] = string(text)
	}
	if len(files) > 0 {
		r.copy("manifests", agentDir)
	}
	return nil
}

// command runs a shell command of the repository, which is copied, because no text of theirs
// becomes an instruction.
func (r *recipe) command(step Step, name, dir, text string) {
	r.Files["commands/"+name] = text + "\n"
	r.copy("commands/"+name, slipwayDir+"/commands/"+name)
	r.run(step, "cd "+inAgent(dir), "sh "+slipwayDir+"/commands/"+name)
}

// buildCommand runs the build command of the configuration file.
func (r *recipe) buildCommand() {
	config := r.source.Config
	text := ""
	if len(config.Build) == 3 && config.Build[0] == "sh" && config.Build[1] == "-c" {
		text = config.Build[2]
	} else {
		for _, arg := range config.Build {
			text += quote(arg) + " "
		}
	}
	r.command(Step{"the build command " + config.BuildText, build.ReasonBuildCommandFailed}, "build", config.Dir, text)
}

// finish says how the agent is started, and whose it is.
func (r *recipe) finish(start []string) error {
	config := r.source.Config
	if len(config.Env) > 0 {
		r.Files["start"] = startScript(config.Env)
		r.copy("start", slipwayDir+"/start")
		start = append([]string{"/bin/sh", slipwayDir + "/start"}, start...)
	}
	entrypoint, err := json.Marshal(start)
	if err != nil {
		return err
	}
	r.add("ENV HOME=/tmp HOST=0.0.0.0 PORT=8080")
	r.add("EXPOSE 8080")
	r.add("WORKDIR " + inAgent(config.Dir))
	r.add("ENTRYPOINT " + string(entrypoint))
	labels := map[string]string{
		"org.opencontainers.image.revision": r.source.Commit, "org.opencontainers.image.source": withoutCredentials(r.source.URL),
		"org.opencontainers.image.created": r.source.Committed.UTC().Format(time.RFC3339),
		"slipway.workspace":                r.source.Workspace, "slipway.deployment": r.source.Deployment, "slipway.revision": r.source.Revision,
	}
	if config.Language != "" {
		labels["slipway.sbom"] = SBOM
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+`="`+escapeLabel.Replace(labels[name])+`"`)
	}
	r.add("LABEL " + strings.Join(words, " \\\n      "))
	return nil
}

// startScript sets what the configuration file wants in the agent's environment, except what the
// agent is given anyway, and becomes the agent. The port is the container's.
func startScript(env map[string]string) string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name != "PORT" {
			fmt.Fprintf(&script, "[ -n \"${%s+set}\" ] || { %[1]s=%s; export %[1]s; }\n", name, quote(env[name]))
		}
	}
	script.WriteString("exec \"$@\"\n")
	return script.String()
}

// quote makes one word for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\n", " ", "\r", " ")

// withoutCredentials takes user and password out of an address.
func withoutCredentials(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// plainPath matches the paths that mean the same to a Dockerfile and to a shell.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9._/@+-]*$`)

// plain wants paths of the repository that can be written into a Dockerfile.
func plain(paths ...string) error {
	for _, p := range paths {
		if !plainPath.MatchString(p) {
			return build.Fail(build.ReasonConfigInvalid, "the path %q has characters that are none of letters, digits, \".\", \"_\", \"-\", \"+\" and \"@\", which cannot be built into an image.", p)
		}
	}
	return nil
}

// inAgent is where a path of the repository is in the image.
func inAgent(dir string) string { return path.Join(agentDir, dir) }
