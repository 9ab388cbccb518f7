package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
)

const (
	// environmentsKept is how many Python environments that no build uses are kept for a workspace.
	environmentsKept = 3
	// environmentNote is the file of a build's record that names the environment that the
	// build uses, relative to the directory of kept files.
	environmentNote = "environment"
	// staged is the subdirectory of a build's directory in which an environment is made.
	staged = "environment"
)

// An environment has the Python packages of a lock state, installed and compiled to bytecode once
// for all builds of a workspace that have the state. Builds and agents only read it: an agent that
// an attacker controls cannot change files that another revision runs. The same files of different
// environments are one file. An environment is there as long as a build uses it. Its name is
// relative to the directory of kept files.

// openEnvironments reads which environments are used.
func (b *Builder) openEnvironments() (err error) {
	b.environments.of, err = b.notes(environmentNote)
	return err
}

// sharedEnvironment returns the environment of a lock. It makes the environment if it is not
// there yet.
func (j *job) sharedEnvironment(ctx context.Context, p python, lock string) (string, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	// The name of a lock depends on everything that the lock follows from, including the
	// interpreter.
	addTo(digest, filepath.Base(lock), text)
	addTo(digest, "runtime", []byte(filepath.Base(p.runtimeDir)))
	name := filepath.Join(j.spec.Workspace, "environments", hex.EncodeToString(digest.Sum(nil)))
	b := j.builder
	kept := filepath.Join(b.cfg.Dir, "kept", name)
	if exists, err := j.enterEnvironment(name); err != nil || exists {
		return kept, err
	}
	if err := j.makeEnvironment(ctx, p, lock); err != nil {
		return "", err
	}
	made, err := j.root.OpenRoot(staged)
	if err != nil {
		return "", err
	}
	if err := errors.Join(j.checkExtent(made.FS()), made.Close()); err != nil {
		return "", err
	}
	err = b.publish(kept, func(temp string) error {
		target := filepath.Join(temp, staged)
		if err := moveDir(filepath.Join(b.dirOf(j.spec.Revision), staged), target); err != nil {
			return err
		}
		if err := shareFiles(ctx, filepath.Dir(kept), target); err != nil {
			b.cfg.Log.Warn("an environment shares not all files that it could", "environment", name, "error", err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	exists, err := j.enterEnvironment(name)
	if err == nil && !exists {
		err = fmt.Errorf("the environment %s was erased when it had just been made", name)
	}
	return kept, errors.Join(err, b.eraseEnvironments(filepath.Dir(kept)))
}

// enterEnvironment notes that the build uses an environment, if the environment is there.
func (j *job) enterEnvironment(name string) (exists bool, err error) {
	b := j.builder
	b.environments.mu.Lock()
	defer b.environments.mu.Unlock()
	err = touch(filepath.Join(b.cfg.Dir, "kept", name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b.environments.of[j.spec.Revision] = name
	return true, replaceFile(filepath.Join(b.recordOf(j.spec.Revision), environmentNote), []byte(name))
}

// leaveEnvironment notes that a build is gone, and erases the environments that are kept for
// no build.
func (b *Builder) leaveEnvironment(revision string) error {
	left, used := b.environments.leave(revision)
	if !used {
		return nil
	}
	return b.eraseEnvironments(filepath.Join(b.cfg.Dir, "kept", filepath.Dir(left)))
}

// eraseEnvironments erases the environments of a workspace that no build uses, except the
// environments that were used last.
func (b *Builder) eraseEnvironments(all string) error {
	b.environments.mu.Lock()
	used := map[string]bool{}
	for _, name := range b.environments.of {
		used[filepath.Join(b.cfg.Dir, "kept", name)] = true
	}
	aside, err := b.asideButNewest(all, environmentsKept, used)
	b.environments.mu.Unlock()
	return errors.Join(err, child.RemoveFiles(aside))
}

// makeEnvironment installs and compiles the packages of a lock, and the runtime, in the
// build's directory. The environment shares its files with nothing else, not with uv's cache
// either. Its programs find their interpreter wherever the environment is moved to.
func (j *job) makeEnvironment(ctx context.Context, p python, lock string) error {
	target := filepath.Join(j.builder.dirOf(j.spec.Revision), staged)
	create := step{
		what: "the creation of", text: "an environment for the dependencies", dir: p.dir, reason: build.ReasonRuntimeMissing,
		args: []string{p.uv, "venv", "--quiet", "--relocatable", "--python", p.interpreter, target},
	}
	if err := j.runStep(ctx, create); err != nil {
		return err
	}
	runtime, err := j.addRuntime(ctx, staged, p.runtimeDir)
	if err != nil {
		return err
	}
	if err := j.install(ctx, p, target, "--compile-bytecode", "-r", lock); err != nil {
		return err
	}
	return j.runStep(ctx, step{
		what: "the compilation of", text: "the runtime", dir: p.dir, reason: build.ReasonRuntimeMissing,
		args: []string{filepath.Join(target, "bin", "python"), "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", runtime},
	})
}

// addRuntime copies the runtime into an environment in the build's directory, and returns its
// path.
func (j *job) addRuntime(ctx context.Context, environment, runtimeDir string) (path string, err error) {
	packages, err := packagesOf(j.root, environment)
	if err != nil {
		return "", err
	}
	from, err := os.OpenRoot(filepath.Join(runtimeDir, "slipway_runtime"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	name := filepath.Join(packages, "slipway_runtime")
	if err := j.root.Mkdir(name, 0o700); err != nil {
		return "", err
	}
	to, err := j.root.OpenRoot(name)
	if err != nil {
		return "", err
	}
	return to.Name(), errors.Join(copyTree(ctx, from, to), to.Close(), j.own(ctx))
}

// packagesOf finds the directory of an environment that packages are installed into.
func packagesOf(root *os.Root, environment string) (string, error) {
	packages, err := fs.Glob(root.FS(), filepath.Join(environment, "lib", "python3*", "site-packages"))
	if err == nil && len(packages) != 1 {
		err = fmt.Errorf("%s has %d directories for packages", environment, len(packages))
	}
	if err != nil {
		return "", err
	}
	return packages[0], nil
}

// linkEnvironment puts links to all entries of an environment into the environment of a build,
// which also contains the build's own files.
func (j *job) linkEnvironment(ctx context.Context, kept, own string) (err error) {
	from, err := os.OpenRoot(filepath.Join(kept, staged))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	packages, err := packagesOf(from, ".")
	if err != nil {
		return err
	}
	for _, dir := range []string{".", "bin", packages} {
		entries, err := fs.ReadDir(from.FS(), dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			err := j.root.Symlink(filepath.Join(from.Name(), dir, entry.Name()), filepath.Join(own, dir, entry.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return j.own(ctx)
}

// moveDir moves a directory that commands have written. It refuses anything else that they may
// have put in its place.
func moveDir(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	info, err := os.Lstat(to)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", from)
	}
	return err
}
