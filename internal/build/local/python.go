package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// uvVersion is the version of uv, which resolves and installs packages, where the machine has none.
const uvVersion = "0.13.8"

var pythonVersion = regexp.MustCompile(`^3\.(1[1-9]|[2-9][0-9])$`)

func checkPythonVersion(version string) error {
	if !pythonVersion.MatchString(version) {
		return errors.New(`must be "3.11" or newer, as major.minor`)
	}
	return nil
}

// pythonDependencies reads a list of requirements, and of directories of the repository. Without one, it is the directory of the file.
func (p *parser) pythonDependencies() {
	if !p.has("dependencies") {
		p.config.dependencies = []string{"."}
		return
	}
	if err := json.Unmarshal(p.fields["dependencies"], &p.config.dependencies); err != nil {
		p.problem(`dependencies: must be a list of requirements and directories, as [".", "requests>=2"]`)
		return
	}
	for i, dependency := range p.config.dependencies {
		switch {
		case strings.ContainsAny(dependency, "\n\r\x00") || strings.TrimSpace(dependency) == "" || strings.HasPrefix(dependency, "-"):
			p.problem("dependencies[%d]: must be a requirement or a directory", i)
		case isDirectory(dependency) && !within(filepath.Join(p.dir, dependency)):
			p.problem("dependencies[%d]: the directory %q leaves the repository", i, dependency)
		}
	}
}

// isDirectory tells the repository's own directories from requirements, by their dot.
func isDirectory(dependency string) bool { return strings.HasPrefix(dependency, ".") }

// pythonPlan is what a repository's environment is made of.
type pythonPlan struct {
	// inputs are files for the resolver, in order; packages are directories to be installed as they are, path those that Python finds modules in.
	inputs, packages, path []string
	// locked are directories whose versions are pinned by a uv.lock.
	locked []string
}

// plan looks at the dependencies of the configuration.
func (j *job) plan(tree string, config config, runtimeDir string) (pythonPlan, error) {
	var plan pythonPlan
	root, err := os.OpenRoot(tree)
	if err != nil {
		return plan, err
	}
	defer root.Close()
	var requirements strings.Builder
	place, err := filepath.Rel(tree, config.dir)
	if err != nil {
		return plan, err
	}
	for _, dependency := range config.dependencies {
		if !isDirectory(dependency) {
			fmt.Fprintln(&requirements, dependency)
			continue
		}
		dir := filepath.Join(place, dependency)
		if info, err := root.Stat(dir); err != nil || !info.IsDir() {
			return plan, fail(build.ReasonConfigInvalid, "dependencies: the repository has no directory %q.", dir)
		}
		at := filepath.Join(tree, dir)
		plan.path = append(plan.path, at)
		if file, ok := firstOf(root, dir, "pyproject.toml", "setup.py"); ok {
			plan.packages = append(plan.packages, at)
			if _, ok := firstOf(root, dir, "uv.lock"); ok && file == "pyproject.toml" {
				plan.locked = append(plan.locked, at)
			} else {
				plan.inputs = append(plan.inputs, filepath.Join(at, file))
			}
		} else if _, ok := firstOf(root, dir, "requirements.txt"); ok {
			plan.inputs = append(plan.inputs, filepath.Join(at, "requirements.txt"))
		}
	}
	written := filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp", "requirements.in")
	plan.inputs = append(plan.inputs, written, filepath.Join(runtimeDir, "pyproject.toml"))
	plan.path = append(plan.path, runtimeDir)
	return plan, os.WriteFile(written, []byte(requirements.String()), 0o600)
}

// installPython makes the environment of a Python repository in the revision's directory. What was resolved once for the same dependencies is
// not resolved again, so that a later revision runs what an earlier one did; files come from uv's cache, which holds each version once.
func (j *job) installPython(ctx context.Context, tree string, config config) (launch, error) {
	uv, err := j.builder.uv(ctx, j)
	if err != nil {
		return launch{}, err
	}
	runtimeDir, err := j.builder.runtimeDir(python)
	if err != nil {
		return launch{}, err
	}
	plan, err := j.plan(tree, config, runtimeDir)
	if err != nil {
		return launch{}, err
	}
	venv := filepath.Join(j.builder.dirOf(j.spec.Revision), "venv")
	create := []string{uv, "venv", "--quiet", venv}
	if config.version != "" {
		create = append(create, "--python", config.version)
	}
	if err := j.runStep(ctx, step{what: "the creation of", text: "a Python environment", args: create, dir: config.dir, reason: build.ReasonRuntimeMissing}); err != nil {
		return launch{}, err
	}
	interpreter := filepath.Join(venv, "bin", "python")
	lock, err := j.resolve(ctx, uv, interpreter, config, &plan)
	if err != nil {
		return launch{}, err
	}
	install := []string{uv, "pip", "install", "--quiet", "--python", interpreter, "--no-deps"}
	if err := j.install(ctx, config, append(install, "-r", lock)); err != nil {
		return launch{}, err
	}
	for _, dir := range plan.packages {
		if err := j.install(ctx, config, append(install, "-e", dir)); err != nil {
			return launch{}, err
		}
	}
	name := filepath.Base(cmp.Or(j.spec.ConfigPath, defaultConfigPath))
	return launch{
		args: []string{interpreter, "-m", "slipway_runtime", "--config", filepath.Join(config.dir, name)},
		env: map[string]string{
			"PYTHONPATH": strings.Join(plan.path, string(filepath.ListSeparator)), "PYTHONUNBUFFERED": "1", "VIRTUAL_ENV": venv,
		},
	}, nil
}

func (j *job) install(ctx context.Context, config config, args []string) error {
	return j.runStep(ctx, step{what: "the installation of", text: "dependencies", args: args, dir: config.dir, reason: build.ReasonDependenciesFailed})
}

// resolve returns a file with the versions of all packages. It is kept in the workspace's cache under everything that it follows from.
func (j *job) resolve(ctx context.Context, uv, interpreter string, config config, plan *pythonPlan) (string, error) {
	for i, dir := range plan.locked {
		exported := filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp", fmt.Sprintf("locked-%d.txt", i))
		args := []string{uv, "export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--project", dir, "-o", exported}
		if err := j.runStep(ctx, step{what: "the reading of", text: "uv.lock", args: args, dir: dir, reason: build.ReasonDependenciesFailed}); err != nil {
			return "", err
		}
		plan.inputs = append(plan.inputs, exported)
	}
	key, err := lockKey(interpreter, plan.inputs)
	if err != nil {
		return "", err
	}
	locks := filepath.Join(j.builder.cacheOf(j.spec.Workspace), "locks")
	if err := makeDirs(locks); err != nil {
		return "", err
	}
	lock := filepath.Join(locks, key+".txt")
	if _, err := os.Stat(lock); err == nil {
		return lock, j.note(revisionlog.Info, "the dependencies are as in an earlier build, whose versions are used")
	}
	temp := filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp", "lock.txt")
	args := append([]string{uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", interpreter, "-o", temp}, plan.inputs...)
	if err := j.runStep(ctx, step{what: "the resolution of", text: "dependencies", args: args, dir: config.dir, reason: build.ReasonDependenciesFailed}); err != nil {
		return "", err
	}
	return lock, os.Rename(temp, lock)
}

// lockKey names everything that a resolution follows from: the interpreter and the inputs.
func lockKey(interpreter string, inputs []string) (string, error) {
	target, err := filepath.EvalSymlinks(interpreter)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	addTo(digest, "interpreter", []byte(target))
	for _, input := range inputs {
		text, err := os.ReadFile(input)
		if err != nil {
			return "", err
		}
		addTo(digest, filepath.Base(input), text)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// uv returns the path of uv: the machine's, or one that is installed for all builds the first time.
func (b *Builder) uv(ctx context.Context, j *job) (string, error) {
	if path, err := exec.LookPath("uv"); err == nil {
		return path, nil
	}
	b.tools.Lock()
	defer b.tools.Unlock()
	dir := filepath.Join(b.cfg.Dir, "tools", "uv-"+uvVersion)
	uv := filepath.Join(dir, "bin", "uv")
	if _, err := os.Stat(uv); err == nil {
		return uv, nil
	}
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		return "", fail(build.ReasonRuntimeMissing, "the agent is written in Python, and this machine has no python3.")
	}
	if err := errors.Join(child.RemoveFiles(dir), makeDirs(filepath.Dir(dir))); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{interpreter, "-m", "venv", dir},
		{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv==" + uvVersion},
	} {
		if err := j.runStep(ctx, step{what: "the installation of", text: "uv", args: args, dir: b.cfg.Dir, reason: build.ReasonRuntimeMissing, platform: true}); err != nil {
			return "", errors.Join(err, child.RemoveFiles(dir))
		}
	}
	return uv, nil
}
