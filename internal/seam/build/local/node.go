package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// installNode installs the dependencies of a JavaScript repository into its tree.
func (j *job) installNode(ctx context.Context, tree string, config framework.Config) (build.Artifact, error) {
	version, err := j.checkNode(ctx, tree, config)
	if err != nil {
		return build.Artifact{}, err
	}
	j.record.LanguageVersion = version
	runtimeDir, err := j.builder.runtimeDir(framework.Node)
	if err != nil {
		return build.Artifact{}, err
	}
	if err := j.installOwn(ctx, runtimeDir, "the Node runtime"); err != nil {
		return build.Artifact{}, err
	}
	install, kept, err := j.installCommand(tree, config, version)
	if err != nil {
		return build.Artifact{}, err
	}
	restored, err := kept.restore(ctx, j)
	if err != nil {
		return build.Artifact{}, err
	}
	if !restored {
		if err := j.runStep(ctx, install); err != nil {
			return build.Artifact{}, err
		}
		if err := kept.keep(ctx, j); err != nil {
			return build.Artifact{}, err
		}
	}
	if j.spec.BuildCommand != "" {
		if err := j.runStep(ctx, shellStep("the build command", j.spec.BuildCommand, filepath.Join(tree, config.Dir), build.ReasonBuildCommandFailed)); err != nil {
			return build.Artifact{}, err
		}
	}
	if config.Settings.HasUI() {
		if err := j.bundleComponents(ctx, tree, runtimeDir, config); err != nil {
			return build.Artifact{}, err
		}
	}
	return build.Artifact{Start: []string{"node", filepath.Join(runtimeDir, "main.mjs"), "--config", filepath.Join(tree, config.Dir, config.File)}}, nil
}

// checkNode checks that the machine's node is not older than the version that the
// configuration names, and returns the version of the machine's node.
func (j *job) checkNode(ctx context.Context, tree string, config framework.Config) (string, error) {
	path, err := j.builder.tools.need("node", "the agent is written in JavaScript, and ")
	if err != nil {
		return "", err
	}
	var printed strings.Builder
	ran, err := j.exec(ctx, child.Command{
		Args: []string{path, "--version"}, Dir: filepath.Join(tree, config.Dir), Env: j.environment(step{}), Stdout: &printed, Confine: j.confinement(step{}),
	}, nil)
	if err != nil || ran.failed() {
		return "", errors.Join(fmt.Errorf("node --version: %s", ran.lastWords()), err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(printed.String()), "v")
	if config.Version == "" || framework.Major(version) == framework.Major(config.Version) {
		return version, nil
	}
	if framework.Major(version) < framework.Major(config.Version) {
		return "", build.Fail(build.ReasonRuntimeMissing, "node_version asks for Node %s, and this machine has %s.", config.Version, version)
	}
	return version, j.note(revisionlog.Info, "node_version: asks for Node %s; this machine has %s, which is used", config.Version, version)
}

// installCommand returns the install command that was configured, or else the command of the
// repository's package manager, in the version that package.json names, or else the machine's
// version, or else the platform's version. The packages that the package manager installs may
// be kept for later builds.
func (j *job) installCommand(tree string, config framework.Config, nodeVersion string) (s step, kept modules, err error) {
	if j.spec.InstallCommand != "" {
		return shellStep("the install command", j.spec.InstallCommand, tree, build.ReasonDependenciesFailed), modules{}, nil
	}
	installation, err := config.Installation(j.tree)
	if err != nil {
		return s, kept, err
	}
	if installation.Lock == "" {
		if err := j.note(revisionlog.Info, "there is no lock file: versions may differ from build to build"); err != nil {
			return s, kept, err
		}
	} else {
		text, err := readWritten(j.tree, filepath.Join(installation.Dir, installation.Lock))
		if err != nil {
			return s, kept, build.Fail(build.ReasonDependenciesFailed, "%s cannot be read: %v.", installation.Lock, err)
		}
		j.record.Dependencies = build.Digest(text)
	}
	_, missing := exec.LookPath(installation.Tool)
	program := installation.Program(installation.Tool != "npm" && (missing != nil || installation.Version != ""))
	s = step{
		what: "the install command", text: strconv.Quote(installation.Text()), args: append(program, installation.Args...),
		dir: filepath.Join(tree, installation.Dir), reason: build.ReasonDependenciesFailed,
	}
	kept, err = j.modulesOf(installation, nodeVersion, s.args)
	return s, kept, err
}

// shellStep is a shell command of the deployment.
func shellStep(what, command, dir, reason string) step {
	return step{what: what, text: strconv.Quote(command), args: []string{"sh", "-c", command}, dir: dir, reason: reason}
}

// installOwn installs the packages of a directory of the platform, once.
func (j *job) installOwn(ctx context.Context, dir, what string) error {
	j.builder.installing.Lock()
	defer j.builder.installing.Unlock()
	installed := filepath.Join(dir, ".installed")
	if _, err := os.Stat(installed); err == nil {
		return nil
	}
	npm, err := j.builder.tools.need("npm", "the agent is written in JavaScript, and ")
	if err != nil {
		return err
	}
	if err := j.builder.makeShared(); err != nil {
		return err
	}
	args := []string{npm, "ci", "--omit=dev", "--no-audit", "--no-fund"}
	if err := j.runStep(ctx, step{what: "the installation of", text: what, args: args, dir: dir, reason: build.ReasonRuntimeMissing, platform: true}); err != nil {
		return err
	}
	if err := disk.Sync(dir); err != nil {
		return err
	}
	return disk.Replace(installed, nil, 0o600)
}

// bundleComponents bundles the components of the repository's user interface into the tree,
// with the packages that the repository has installed.
func (j *job) bundleComponents(ctx context.Context, tree, runtimeDir string, config framework.Config) error {
	bundler := filepath.Join(runtimeDir, "ui")
	if err := j.installOwn(ctx, bundler, "the bundler of components"); err != nil {
		return err
	}
	dir := filepath.Join(tree, config.Dir)
	return j.runStep(ctx, step{
		what: "the bundling of", text: "the components that ui names", dir: dir, reason: build.ReasonBuildCommandFailed,
		args: []string{"node", filepath.Join(bundler, "bundle.mjs"), filepath.Join(dir, config.File)},
	})
}
