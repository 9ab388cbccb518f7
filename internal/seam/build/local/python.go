package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// locksKept is how many resolutions are kept for a workspace.
const locksKept = 1000

// python is an environment on this machine, with the paths that are used to make it. All paths are
// absolute, except those of the Environment.
type python struct {
	framework.Environment
	inputs, packages, path []string
	// dir is the directory where commands run.
	dir string

	uv, runtimeDir, interpreter string
}

// runtime is the input that does not belong to the repository.
func (p python) runtime() string { return filepath.Join(p.runtimeDir, "pyproject.toml") }

// plan reads the dependencies of the configuration, and writes the dependencies that are in no
// file yet into a file.
func (j *job) plan(tree string, config framework.Config) (python, error) {
	environment, err := config.Environment(j.tree)
	if err != nil {
		return python{}, err
	}
	in := func(paths []string) []string {
		absolute := make([]string, len(paths))
		for i, path := range paths {
			absolute[i] = filepath.Join(tree, path)
		}
		return absolute
	}
	written := filepath.Join(j.builder.recordOf(j.spec.Revision), "requirements.in")
	return python{
		Environment: environment, inputs: append(in(environment.Inputs), written),
		packages: in(environment.Packages), path: in(environment.Path), dir: filepath.Join(tree, environment.Dir),
	}, replaceFile(written, []byte(environment.Requirements))
}

// venv is the name of a build's environment in its directory.
const venv = "venv"

// installPython makes the environment of a Python repository in the revision's directory. If
// the same dependencies were resolved before, they are not resolved again, so that a later
// revision runs the same versions as the earlier revision. The packages that were installed
// for them are shared.
func (j *job) installPython(ctx context.Context, tree string, config framework.Config) (build.Artifact, error) {
	uv, err := j.builder.uv(ctx, j)
	if err != nil {
		return build.Artifact{}, err
	}
	runtimeDir, err := j.builder.runtimeDir(framework.Python)
	if err != nil {
		return build.Artifact{}, err
	}
	p, err := j.plan(tree, config)
	if err != nil {
		return build.Artifact{}, err
	}
	own := filepath.Join(j.builder.dirOf(j.spec.Revision), venv)
	p.uv, p.runtimeDir, p.interpreter = uv, runtimeDir, filepath.Join(own, "bin", "python")
	create := step{
		what: "the creation of", text: "a Python environment", args: []string{uv, "venv", "--quiet", "--python", config.Interpreter(j.tree, p.Environment), own},
		// Not in the tree: what finds interpreters would read .python-version there.
		dir: filepath.Dir(own), reason: build.ReasonRuntimeMissing,
	}
	if err := j.runStep(ctx, create); err != nil {
		return build.Artifact{}, err
	}
	lock, err := j.resolve(ctx, &p)
	if err != nil {
		return build.Artifact{}, err
	}
	if err := j.recordPython(lock); err != nil {
		return build.Artifact{}, err
	}
	shared, err := j.installPackages(ctx, p, lock)
	if err != nil {
		return build.Artifact{}, err
	}
	return build.Artifact{
		Start: []string{p.interpreter, "-m", "slipway_runtime", "--config", filepath.Join(tree, config.Dir, config.File)},
		Env: map[string]string{
			"PYTHONPATH": strings.Join(p.path, string(filepath.ListSeparator)), "PYTHONUNBUFFERED": "1", "VIRTUAL_ENV": own,
		},
		Shared: shared,
	}, nil
}

// recordPython notes the version of the environment's interpreter, and the digest of the
// versions that its dependencies were resolved to.
func (j *job) recordPython(lock string) error {
	versions, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	settings, err := readWritten(j.root, filepath.Join(venv, "pyvenv.cfg"))
	if err != nil {
		return err
	}
	j.record.Dependencies = build.Digest(versions)
	if version := interpreterVersion.FindSubmatch(settings); version != nil {
		j.record.LanguageVersion = string(version[1])
	}
	return nil
}

// interpreterVersion matches the version of the interpreter in the settings of an environment.
var interpreterVersion = regexp.MustCompile(`(?m)^version(?:_info)? *= *([0-9.]+)`)

// installPackages installs the packages that a lock names, or links to the directory where
// they are installed for all builds. Then it installs the repository's own packages. It
// returns the directories that the build shares.
func (j *job) installPackages(ctx context.Context, p python, lock string) (shared []string, err error) {
	shareable, err := j.shareable(p, lock)
	if err != nil {
		return nil, err
	}
	if shareable {
		kept, err := j.sharedEnvironment(ctx, p, lock)
		if err != nil {
			return nil, err
		}
		if err := j.linkEnvironment(ctx, kept, venv); err != nil {
			return nil, err
		}
		shared = []string{kept}
	} else {
		if _, err := j.addRuntime(ctx, venv, p.runtimeDir); err != nil {
			return nil, err
		}
		if err := j.install(ctx, p, p.interpreter, "-r", lock); err != nil {
			return nil, err
		}
	}
	for _, path := range p.packages {
		if err := j.install(ctx, p, p.interpreter, "-e", path); err != nil {
			return nil, err
		}
	}
	return shared, nil
}

// pinned matches the lines of a lock that fully determine a package: by a version, or by a
// commit.
var pinned = regexp.MustCompile(`^([A-Za-z0-9._-]+)(\[[^\]]*\])?(==| @ git\+[^ #]+@[0-9a-f]{40}\b)`)

// shareable reports whether the packages that a lock names are the same for all builds, and
// the repository's own packages replace no package among them.
func (j *job) shareable(p python, lock string) (bool, error) {
	if len(p.Pip) > 0 {
		return false, nil // another index may have other packages under the same names
	}
	text, err := os.ReadFile(lock)
	if err != nil {
		return false, err
	}
	own, known := p.Distributions(j.tree)
	if !known {
		return false, nil
	}
	for line := range strings.Lines(string(text)) {
		name := pinned.FindStringSubmatch(line)
		if name == nil || slices.Contains(own, framework.NormalName(name[1])) {
			return false, nil
		}
	}
	return true, nil
}

// install installs packages into the environment of an interpreter. The files are not shared
// with uv's cache, because an agent could change the cache through its own files.
func (j *job) install(ctx context.Context, p python, interpreter string, more ...string) error {
	return j.runStep(ctx, step{
		what: "the installation of", text: "dependencies", dir: p.dir, reason: build.ReasonDependenciesFailed,
		args: append([]string{p.uv, "pip", "install", "--quiet", "--link-mode", "copy", "--python", interpreter, "--no-deps"}, more...),
		// When bytecode is made, the sources do not change any more. If uv started a process
		// for each processor of a large machine, they would need more memory than a build may
		// use.
		env: append([]string{"PYC_INVALIDATION_MODE=UNCHECKED_HASH", "UV_CONCURRENT_INSTALLS=4"}, p.Pip...),
	})
}

// resolve returns a file with the versions of all packages. The file is kept for the
// workspace, under a key of everything that it follows from. If not all of that is known, no other
// revision uses the file.
func (j *job) resolve(ctx context.Context, p *python) (string, error) {
	if p.Locked != nil {
		exported := filepath.Join(j.temp(), "locked.txt")
		args := append([]string{p.uv}, p.Locked.Export(exported)...)
		if err := j.runStep(ctx, step{what: "the reading of", text: "uv.lock", args: args, dir: p.dir, reason: build.ReasonDependenciesFailed}); err != nil {
			return "", err
		}
		p.inputs = append(p.inputs, exported)
	}
	key, err := j.lockKey(*p)
	if err != nil {
		return "", err
	}
	locks := filepath.Join(j.builder.keptOf(j.spec.Workspace), "locks")
	if err := makeReadable(locks); err != nil {
		return "", err
	}
	lock := filepath.Join(locks, key+".txt")
	if err := touch(lock); err == nil {
		return lock, j.note(revisionlog.Info, "the dependencies are as in an earlier build, whose versions are used")
	}
	resolved := filepath.Join(j.temp(), "lock.txt")
	compile := step{
		what: "the resolution of", text: "dependencies", dir: p.dir, reason: build.ReasonDependenciesFailed,
		args: append([]string{p.uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", p.interpreter, "-o", resolved}, p.inputs...),
		env:  p.Pip,
	}
	if err := j.resolveWith(ctx, compile, p.runtime()); err != nil {
		return "", err
	}
	text, err := j.readInput(resolved)
	if err != nil {
		return "", err
	}
	return lock, errors.Join(replaceFile(lock, text), j.builder.keepNewest(locks, locksKept))
}

// resolveWith resolves the repository's dependencies together with the runtime's dependencies.
// If this fails, it finds out whether the repository's dependencies fail without the runtime,
// too.
func (j *job) resolveWith(ctx context.Context, compile step, runtime string) error {
	own := compile
	compile.args = append(slices.Clone(compile.args), runtime)
	err := j.runStep(ctx, compile)
	failed, ok := errors.AsType[*build.Failure](err)
	if !ok || failed.Reason != compile.reason {
		return err
	}
	if err := j.runStep(ctx, own); err != nil {
		return err
	}
	return build.Fail(failed.Reason, "%s: %s", framework.RuntimeConflict, failed.Message)
}

// readInput reads a file that dependencies follow from. It reads a file in the build's own
// directory without leaving that directory, because the repository and its commands may have
// put the file there.
func (j *job) readInput(path string) ([]byte, error) {
	name, err := filepath.Rel(j.root.Name(), path)
	if err != nil || !filepath.IsLocal(name) {
		return os.ReadFile(path)
	}
	text, err := readWritten(j.root, name)
	if err != nil {
		return nil, build.Fail(build.ReasonDependenciesFailed, "%s cannot be read: %v.", name, err)
	}
	return text, nil
}

// lockKey returns a digest of everything that a resolution follows from: the interpreter, the
// settings and the inputs. If other files may matter, too, the revision stands for them.
func (j *job) lockKey(p python) (string, error) {
	target, err := filepath.EvalSymlinks(p.interpreter)
	if err != nil {
		return "", err
	}
	manifests, err := p.Manifests(j.tree)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	addTo(digest, "interpreter", []byte(target))
	if manifests == nil {
		addTo(digest, "revision", []byte(j.spec.Revision))
	}
	for _, setting := range p.Pip {
		addTo(digest, "setting", []byte(setting))
	}
	for _, input := range append(p.inputs, p.runtime()) {
		text, err := j.readInput(input)
		if err != nil {
			return "", err
		}
		addTo(digest, filepath.Base(input), text)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// uv returns the path of uv: the machine's uv, or a uv that is installed for all builds the
// first time.
func (b *Builder) uv(ctx context.Context, j *job) (string, error) {
	if path, err := b.tools.find("uv"); err != nil || path != "" {
		return path, err
	}
	b.installing.Lock()
	defer b.installing.Unlock()
	dir := filepath.Join(b.cfg.Dir, "tools", "uv-"+framework.UVVersion)
	uv := filepath.Join(dir, "bin", "uv")
	if _, err := os.Stat(uv); err == nil {
		return uv, nil
	}
	interpreter, err := b.tools.need("python3", "the agent is written in Python, and ")
	if err != nil {
		return "", err
	}
	if err := errors.Join(child.RemoveFiles(dir), b.makeShared()); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{interpreter, "-m", "venv", dir},
		{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv==" + framework.UVVersion},
	} {
		if err := j.runStep(ctx, step{what: "the installation of", text: "uv", args: args, dir: b.cfg.Dir, reason: build.ReasonRuntimeMissing, platform: true}); err != nil {
			return "", errors.Join(err, child.RemoveFiles(dir))
		}
	}
	return uv, nil
}
