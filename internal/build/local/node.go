package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

var nodeVersion = regexp.MustCompile(`^(2[0-9]|[3-9][0-9])(\.[0-9]+){0,2}$`)

func checkNodeVersion(version string) error {
	if !nodeVersion.MatchString(version) {
		return errors.New(`must be "20" or newer`)
	}
	return nil
}

// packageTool is a package manager of JavaScript: its lock files, how it installs exactly what they say, and its package where the machine lacks it.
type packageTool struct {
	name    string
	locks   []string
	install []string
	version string
}

// packageTools are in the order in which their lock files are looked for. A repository without any is installed by the last.
var packageTools = []packageTool{
	{"pnpm", []string{"pnpm-lock.yaml"}, []string{"install", "--frozen-lockfile"}, "10.34.8"},
	{"yarn", []string{"yarn.lock"}, []string{"install", "--frozen-lockfile"}, "1.22.22"},
	{"bun", []string{"bun.lock", "bun.lockb"}, []string{"install", "--frozen-lockfile"}, "1.4.5"},
	{"npm", []string{"package-lock.json", "npm-shrinkwrap.json"}, []string{"ci", "--no-audit", "--no-fund"}, ""},
}

// installNode installs what a JavaScript repository depends on into its tree.
func (j *job) installNode(ctx context.Context, tree string, config config) (launch, error) {
	version, err := j.checkNode(ctx, config)
	if err != nil {
		return launch{}, err
	}
	runtimeDir, err := j.nodeRuntime(ctx)
	if err != nil {
		return launch{}, err
	}
	install, kept, err := j.installCommand(tree, config, version)
	if err != nil {
		return launch{}, err
	}
	restored, err := kept.restore(j)
	if err != nil {
		return launch{}, err
	}
	if !restored {
		if err := j.runStep(ctx, install); err != nil {
			return launch{}, err
		}
		if err := kept.keep(j); err != nil {
			return launch{}, err
		}
	}
	if j.spec.BuildCommand != "" {
		command := step{
			what: "the build command", text: strconv.Quote(j.spec.BuildCommand), args: []string{"sh", "-c", j.spec.BuildCommand},
			dir: config.dir, reason: build.ReasonBuildCommandFailed,
		}
		if err := j.runStep(ctx, command); err != nil {
			return launch{}, err
		}
	}
	name := filepath.Base(cmp.Or(j.spec.ConfigPath, defaultConfigPath))
	return launch{args: []string{"node", filepath.Join(runtimeDir, "main.mjs"), "--config", filepath.Join(config.dir, name)}, env: map[string]string{}}, nil
}

// checkNode wants a node that is not older than the one that the configuration names, and returns its version.
func (j *job) checkNode(ctx context.Context, config config) (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", fail(build.ReasonRuntimeMissing, "the agent is written in JavaScript, and this machine has no node.")
	}
	var printed strings.Builder
	ran, err := j.exec(ctx, child.Command{Args: []string{path, "--version"}, Dir: config.dir, Env: j.environment(), Stdout: &printed})
	if err != nil || ran.failed() {
		return "", errors.Join(fmt.Errorf("node --version: %s", ran.lastWords()), err)
	}
	there := strings.TrimPrefix(strings.TrimSpace(printed.String()), "v")
	if config.version == "" || major(there) == major(config.version) {
		return there, nil
	}
	if major(there) < major(config.version) {
		return "", fail(build.ReasonRuntimeMissing, "node_version asks for Node %s, and this machine has %s.", config.version, there)
	}
	return there, j.note(revisionlog.Info, "node_version: asks for Node %s; this machine has %s, which is used", config.version, there)
}

func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	number, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return number
}

// installCommand is the one that was configured, or that of the package manager whose lock file is nearest above the configuration file. What the latter
// installs may be kept for later builds.
func (j *job) installCommand(tree string, config config, nodeVersion string) (s step, kept modules, err error) {
	if j.spec.InstallCommand != "" {
		return step{
			what: "the install command", text: strconv.Quote(j.spec.InstallCommand), args: []string{"sh", "-c", j.spec.InstallCommand},
			dir: tree, reason: build.ReasonDependenciesFailed,
		}, modules{}, nil
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return s, kept, err
	}
	defer root.Close()
	place, err := filepath.Rel(tree, config.dir)
	if err != nil {
		return s, kept, err
	}
	manifest := ""
	for dir := place; ; dir = filepath.Dir(dir) {
		if _, ok := firstOf(root, dir, "package.json"); ok && manifest == "" {
			manifest = dir
		}
		for _, tool := range packageTools {
			if lock, ok := firstOf(root, dir, tool.locks...); ok {
				if s, err = j.installWith(root, dir, tool, tool.install); err == nil {
					kept, err = j.modulesOf(root, dir, lock, nodeVersion, s.args)
				}
				return s, kept, err
			}
		}
		if dir == "." {
			break
		}
	}
	if manifest == "" {
		return s, kept, fail(build.ReasonConfigInvalid, "the repository has no package.json beside the framework configuration file or above it.")
	}
	if err := j.note(revisionlog.Info, "there is no lock file: versions may differ from build to build"); err != nil {
		return s, kept, err
	}
	s, err = j.installWith(root, manifest, packageTools[len(packageTools)-1], []string{"install", "--no-audit", "--no-fund"})
	return s, kept, err
}

// installWith runs a package manager in a directory of the tree: in the version that package.json names, or else the machine's, or else ours.
func (j *job) installWith(root *os.Root, dir string, tool packageTool, args []string) (step, error) {
	named, err := namedVersion(root, dir, tool.name)
	if err != nil {
		return step{}, err
	}
	if tool.name == "yarn" && major(named) > 1 {
		args = []string{"install", "--immutable"}
	}
	program := []string{tool.name}
	if _, missing := exec.LookPath(tool.name); tool.name != "npm" && (missing != nil || named != "") {
		wanted := tool.name
		if wanted == "yarn" && major(named) > 1 {
			wanted = "@yarnpkg/cli-dist"
		}
		program = []string{"npx", "--yes", "--package", wanted + "@" + cmp.Or(named, tool.version), "--", tool.name}
	}
	return step{
		what: "the install command", text: strconv.Quote(tool.name + " " + strings.Join(args, " ")), args: append(program, args...),
		dir: filepath.Join(root.Name(), dir), reason: build.ReasonDependenciesFailed,
	}, nil
}

// namedVersion is the version in packageManager of package.json ("pnpm@9.1.0+sha512..."), "" when it names none of the tool.
func namedVersion(root *os.Root, dir, tool string) (string, error) {
	if _, ok := firstOf(root, dir, "package.json"); !ok {
		return "", nil
	}
	text, err := readFile(root, filepath.Join(dir, "package.json"))
	if err != nil {
		return "", fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", filepath.Join(dir, "package.json"), err)
	}
	var manifest struct {
		PackageManager string `json:"packageManager"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", fail(build.ReasonConfigInvalid, "%s is not a JSON object: %v%s.", filepath.Join(dir, "package.json"), err, placeOf(text, err))
	}
	name, version, _ := strings.Cut(manifest.PackageManager, "@")
	if name != tool {
		return "", nil
	}
	version, _, _ = strings.Cut(version, "+")
	if strings.ContainsFunc(version, func(r rune) bool { return !strings.ContainsRune("0123456789.abcdefghijklmnopqrstuvwxyz-", r) }) {
		return "", fail(build.ReasonConfigInvalid, "packageManager of %s: %q is not a version.", filepath.Join(dir, "package.json"), version)
	}
	return version, nil
}

// nodeRuntime returns the runtime's directory with its own packages installed, which is done once.
func (j *job) nodeRuntime(ctx context.Context) (string, error) {
	dir, err := j.builder.runtimeDir(node)
	if err != nil {
		return "", err
	}
	j.builder.tools.Lock()
	defer j.builder.tools.Unlock()
	installed := filepath.Join(dir, ".installed")
	if _, err := os.Stat(installed); err == nil {
		return dir, nil
	}
	args := []string{"npm", "ci", "--omit=dev", "--no-audit", "--no-fund"}
	if err := j.runStep(ctx, step{what: "the installation of", text: "the Node runtime", args: args, dir: dir, reason: build.ReasonRuntimeMissing, platform: true}); err != nil {
		return "", err
	}
	return dir, os.WriteFile(installed, nil, 0o600)
}
