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
	// Other is the base image of agents in any other language (debian:13-slim of the
	// registry).
	Other string
}

const defaultRegistry = "docker.io/library"

// defaultVersions are the versions for a repository that names no version.
var defaultVersions = map[framework.Language]string{framework.Python: "3.13", framework.Node: "22"}

// record returns the record of an image, with its base image, as far as it is known before the
// dependencies are known.
func (b Bases) record(source Source) (build.Record, error) {
	config := source.Config
	registry := strings.TrimSuffix(cmp.Or(b.Registry, defaultRegistry), "/")
	record := build.NewRecord(string(config.Language))
	if config.Language == "" {
		record.Base = cmp.Or(b.Other, registry+"/debian:13-slim")
		return record, nil
	}
	record.LanguageVersion = cmp.Or(config.Version, defaultVersions[config.Language])
	if config.Language == framework.Python {
		environment, err := config.Environment(source.Tree)
		if err != nil {
			return record, err
		}
		record.LanguageVersion = framework.NearestPython(config.Interpreter(source.Tree, environment), defaultVersions[config.Language])
	}
	record.Base = registry + "/" + record.Language + ":" + record.LanguageVersion + "-slim"
	return record, nil
}

// pinnedBy notes in the record that a lock file of the tree pins the dependencies.
func (r *recipe) pinnedBy(lock string) error {
	text, err := r.source.Tree.ReadFile(lock)
	if err != nil {
		return err
	}
	r.Record.Dependencies = build.Digest(text)
	return nil
}

// Source is a commit from which an image is made.
type Source struct {
	// Tree is the directory where the commit is checked out. It is only read.
	Tree   *os.Root
	Config framework.Config
	// URL is the repository's address; credentials in it are left out.
	URL, Commit string
	Committed   time.Time
	// Workspace, Deployment and Revision are for labels.
	Workspace, Deployment, Revision string
	// InstallCommand and BuildCommand are the commands of build.Spec.
	InstallCommand, BuildCommand string
}

// Recipe is a Dockerfile and everything that its build needs.
type Recipe struct {
	// Base is the image that the Dockerfile starts from.
	Base string
	// Dockerfile is the text. Steps has one entry for each instruction in it, as builders count
	// them.
	Dockerfile string
	Steps      []Step
	// Files are the files of the build's context, by their paths. The context also has the tree,
	// without .git, as the directory Tree.
	Files map[string]string
	// Record is the record of the image, without the image itself.
	Record build.Record
}

// Tree is the directory of the repository in a recipe's context. Because it is a subdirectory
// of the context, a .dockerignore of the repository has no effect on the files that are
// copied.
const Tree = "app"

// Step describes an instruction whose failure is the repository's fault. The zero Step is an
// instruction of the platform.
type Step struct {
	// What names the work of the step ("the install command"). Reason is the reason of its
	// failure.
	What   string `json:"what"`
	Reason string `json:"reason"`
	// Own says that the repository has written the instruction: if the engine refuses it, this is
	// the repository's fault, too.
	Own bool `json:"own,omitempty"`
}

// StepError is the failure of a step that is not a step of the platform.
type StepError struct {
	Step
	// Code is the exit code, 0 if the engine has refused the step; Refusal says why.
	Code    int
	Refusal string
}

func (e *StepError) Error() string {
	if e.Code == 0 {
		return e.What + " cannot be carried out: " + e.Refusal
	}
	return e.What + fmt.Sprintf(" exited with code %d", e.Code)
}

// killed is the exit code of a step that was killed. Engines kill a step that uses more memory
// than its limit.
const killed = 137

// Failure returns the failure of the build, with the last output of the step.
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
	// owner is the user that runs the agent and owns all of the agent's files.
	owner = "10001:10001"
	// SBOM is the path of the list of installed packages, in CycloneDX's JSON.
	SBOM = slipwayDir + "/sbom.cdx.json"
)

// recipe is a Recipe in the making.
type recipe struct {
	source Source
	text   strings.Builder
	Recipe
}

// Make makes the recipe of a commit. If something is wrong with the repository, the error is a
// build.Failure.
func Make(source Source, bases Bases) (Recipe, error) {
	record, err := bases.record(source)
	r := &recipe{source: source, Recipe: Recipe{Base: record.Base, Files: map[string]string{}, Record: record}}
	if err == nil {
		err = r.write()
	}
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
	r.lines()
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

// lines writes the instructions of the repository's own, which begin as root. The platform's
// instructions after them begin as root, too.
func (r *recipe) lines() {
	for _, line := range r.source.Config.Lines {
		r.step(Step{What: fmt.Sprintf("the instruction %.60q of dockerfile_lines", line), Reason: build.ReasonBuildCommandFailed, Own: true}, line)
	}
	if len(r.source.Config.Lines) > 0 {
		r.add("USER 0:0")
	}
}

// add writes an instruction of the platform.
func (r *recipe) add(instruction string) { r.step(Step{}, instruction) }

func (r *recipe) step(step Step, instruction string) {
	r.text.WriteString(instruction + "\n")
	r.Steps = append(r.Steps, step)
}

// copy copies a part of the context into the image. The copy belongs to the agent's user.
func (r *recipe) copy(from, to string) { r.add("COPY --chown=" + owner + " " + from + " " + to) }

// run runs commands one after the other, with a home directory that is deleted afterwards.
func (r *recipe) run(step Step, commands ...string) {
	commands = slices.Concat([]string{"export HOME=/tmp/build CI=true", "mkdir -p /tmp/build"}, commands, []string{"rm -rf /tmp/build"})
	r.step(step, "RUN "+strings.Join(commands, " \\\n && "))
}

// prepare makes the directories of the agent's user, runs the platform's commands as root, and
// then switches to the agent's user.
func (r *recipe) prepare(commands ...string) error {
	directories := fmt.Sprintf("mkdir -p %s %s && chown %s %[1]s %[2]s", agentDir, slipwayDir, owner)
	r.step(Step{What: "the preparation of the base image", Reason: build.ReasonRuntimeMissing}, "RUN "+strings.Join(append([]string{directories}, commands...), " \\\n && "))
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

// before copies the files that the installation of dependencies needs: the manifests, if they are
// enough, else the whole tree, in which the build command runs.
func (r *recipe) before(manifests []string) (alone bool, err error) {
	if manifests == nil || r.source.Config.Build != nil {
		r.whole()
		return false, nil
	}
	for _, file := range manifests {
		text, err := r.source.Tree.ReadFile(file)
		if err != nil {
			return false, err
		}
		r.Files[path.Join("manifests", file)] = string(text)
	}
	if len(manifests) > 0 {
		r.copy("manifests", agentDir)
	}
	return true, nil
}

// command runs a shell command of the repository. It copies the command as a file, so that no
// text of the repository becomes an instruction.
func (r *recipe) command(step Step, name, dir, text string) {
	r.Files["commands/"+name] = text + "\n"
	r.copy("commands/"+name, slipwayDir+"/commands/"+name)
	r.run(step, "cd "+inAgent(dir), "sh "+slipwayDir+"/commands/"+name)
}

// whole copies the tree, and runs the build command of the configuration file in it.
func (r *recipe) whole() {
	r.copy(Tree, agentDir)
	config := r.source.Config
	text := ""
	switch {
	case config.Build == nil:
		return
	case len(config.Build) == 3 && config.Build[0] == "sh" && config.Build[1] == "-c":
		text = config.Build[2]
	default:
		for _, arg := range config.Build {
			text += build.ShellWord(arg) + " "
		}
	}
	r.command(Step{What: "the build command " + config.BuildText, Reason: build.ReasonBuildCommandFailed}, "build", config.Dir, text)
}

// finish writes the instructions that start the agent, and the labels of the image.
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

// startScript returns a script that sets the environment variables of the configuration file,
// except the variables that the agent already has, and then becomes the agent. It does not set
// PORT: the port is the container's.
func startScript(env map[string]string) string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name != "PORT" {
			fmt.Fprintf(&script, "[ -n \"${%s+set}\" ] || { %[1]s=%s; export %[1]s; }\n", name, build.ShellWord(env[name]))
		}
	}
	script.WriteString("exec \"$@\"\n")
	return script.String()
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "\n", " ", "\r", " ")

// withoutCredentials removes user and password from an address.
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

// plain returns a build.Failure if a path of the repository cannot be written into a
// Dockerfile.
func plain(paths ...string) error {
	for _, p := range paths {
		if !plainPath.MatchString(p) {
			return build.Fail(build.ReasonConfigInvalid, "the path %q has characters that are none of letters, digits, \".\", \"_\", \"-\", \"+\" and \"@\", which cannot be built into an image.", p)
		}
	}
	return nil
}

// inAgent returns the path in the image for a path of the repository.
func inAgent(dir string) string { return path.Join(agentDir, dir) }
