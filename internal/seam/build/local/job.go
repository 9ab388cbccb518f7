package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

// job is one build that waits or runs.
type job struct {
	builder *Builder
	spec    build.Spec
	// ctx ends when the build is cancelled.
	ctx    context.Context
	cancel context.CancelFunc
	// root is the revision's directory while the build runs, tree the directory of its commit.
	// Both are the directories from before the first command: the builder does not follow
	// anything that commands may have put in their place.
	root, tree *os.Root
	// home is the directory that the build has in common with other builds of its workspace.
	home string
	// user is the user of the workspace's commands, 0 for the server's own user.
	user int
	// record is filled while the build runs.
	record build.Record
	// running is the command that runs, nil between two commands.
	running atomic.Pointer[child.Process]

	// done is closed when result and err are set.
	done   chan struct{}
	result build.Result
	// err is the reason why the build has no result: a fault of the server, not of the
	// repository.
	err error
}

// run builds and stores the result. A build that was cancelled has no result. A build that
// panics has failed.
func (j *job) run() {
	defer j.cancel()
	began := time.Now()
	result, err := j.try()
	if j.ctx.Err() != nil {
		return
	}
	var failed *build.Failure
	switch {
	case errors.As(err, &failed):
		failed = j.explain(failed)
		result = build.Result{State: build.Failed, CommitSHA: result.CommitSHA, Reason: failed.Reason, Message: failed.Message}
		// There may be room for the result if there is no room for its log.
		err = unlessFull(j.note(revisionlog.Error, "%s", failed.Message))
	case err == nil:
		err = j.note(revisionlog.Info, "built in %s", time.Since(began).Round(time.Millisecond))
	}
	if err == nil {
		err = j.builder.keepSize(j.spec)
	}
	if err == nil {
		err = disk.Sync(j.builder.cfg.Dir) // the result must not outlast what was built
	}
	if err == nil {
		err = j.builder.record(j.spec.Revision, resultNote, result)
	}
	if failed != nil {
		err = unlessFull(err)
	}
	if err != nil {
		j.err = fmt.Errorf("build revision %s: %w", j.spec.Revision, err)
		return
	}
	j.result = result
}

// unlessFull returns an error, nil if it says that the disk is full: a full disk does not keep a
// failure, which a person has to hear of all the same.
func unlessFull(err error) error {
	if fault.Is(disk.Named(err), fault.NoRoom) {
		return nil
	}
	return err
}

// tries is how often a build is tried whose error is not the repository's fault, because such an
// error may pass. tryPause is the time between two tries.
const (
	tries    = 3
	tryPause = time.Second
)

// try builds until the build has succeeded, has failed or was cancelled, or until all tries had
// an error that nothing explains. A build with such an error has failed, too: the same build
// would end with the same error again and again.
func (j *job) try() (result build.Result, err error) {
	for n := 1; ; n++ {
		result, err = j.buildOnce()
		if _, failed := errors.AsType[*build.Failure](err); err == nil || failed || j.ctx.Err() != nil {
			return result, err
		}
		if n == tries {
			j.builder.cfg.Log.Error("a build could not be completed", "revision", j.spec.Revision, "error", err)
			return result, build.Fail(build.ReasonInternal, internalTrouble)
		}
		select {
		case <-time.After(tryPause):
		case <-j.ctx.Done():
		}
	}
}

// internalTrouble is the message for a person about ReasonInternal.
const internalTrouble = "the platform could not complete this build; the server's log says why. Tell its operator."

// buildOnce builds, and finds the reasons of errors that have a reason other than the repository.
func (j *job) buildOnce() (result build.Result, err error) {
	err = guard.Run(j.builder.cfg.Log, "build of revision "+j.spec.Revision, func() (err error) {
		result, err = j.build()
		return err
	})
	if _, panicked := errors.AsType[*guard.PanicError](err); panicked {
		err = build.Fail(build.ReasonInternal, internalTrouble)
	}
	if err = disk.Named(err); fault.Is(err, fault.NoRoom) && j.ctx.Err() == nil {
		j.builder.cfg.Log.Error("a build found no room", "revision", j.spec.Revision, "error", err)
		err = build.Fail(build.ReasonOutOfDisk, "%s", disk.ErrFull)
	}
	return result, err
}

// explain names the disk as the reason of a build that failed while there was no room, because
// commands report a full disk in many ways. A command that has removed its files before it ended
// leaves room, and only its output tells.
func (j *job) explain(failed *build.Failure) *build.Failure {
	full := strings.Contains(strings.ToLower(failed.Message), syscall.ENOSPC.Error())
	if failed.Reason == build.ReasonOutOfDisk || !full && j.builder.cfg.Space.Reserve() == nil {
		return failed
	}
	return build.Fail(build.ReasonOutOfDisk, "the server's disk is nearly full; tell its operator. %s", failed.Message)
}

// build does the work. It begins with an empty directory.
func (j *job) build() (result build.Result, err error) {
	dir := j.builder.dirOf(j.spec.Revision)
	tree := filepath.Join(dir, "src")
	if err := j.open(dir, tree); err != nil {
		return build.Result{}, err
	}
	leave := j.builder.cfg.Users.Enter(j.user)
	defer func() { err = errors.Join(err, leave(), j.tree.Close(), j.root.Close()) }()
	if err := j.checkRoom(); err != nil {
		return build.Result{}, err
	}
	ctx, release := j.bounded(dir)
	defer release()
	from, err := j.fetch(ctx, tree)
	result = build.Result{State: build.Succeeded, CommitSHA: from.id}
	if err != nil {
		return result, cmp.Or(stopped(ctx, j.fetching()), err)
	}
	if err := j.own(ctx); err != nil {
		return result, ended(ctx, err)
	}
	config, err := framework.Read(tree, j.spec.ConfigPath, j.builder.cfg.Offers...)
	if err != nil {
		return result, err
	}
	for _, remark := range config.RemarksOn(j.spec.InstallCommand, j.spec.BuildCommand) {
		if err := j.note(revisionlog.Info, "%s", remark); err != nil {
			return result, err
		}
	}
	result.Artifact, err = j.prepare(ctx, tree, from, config)
	if err != nil {
		return result, ended(ctx, err)
	}
	if j.overfull(dir) { // it may have written files since the last look
		return result, build.Fail(build.ReasonOutOfDisk, "the files of the build take more than the %d MB of disk that they may.", j.builder.cfg.DiskMB)
	}
	result.Record = j.record
	return result, child.RemoveFiles(j.temp())
}

// open makes the directories of a build, empty, and the directories that it has in common with
// other builds.
func (j *job) open(dir, tree string) error {
	b, revision := j.builder, j.spec.Revision
	if err := errors.Join(child.RemoveFiles(dir), child.RemoveFiles(b.recordOf(revision))); err != nil {
		return err
	}
	if err := makeDirs(tree, j.temp(), b.recordOf(revision)); err != nil {
		return err
	}
	var err error
	if j.user, err = b.cfg.Users.Of(j.spec.Workspace); err != nil {
		return err
	}
	if j.home, err = b.enterHome(j.spec.Workspace, revision); err != nil {
		return err
	}
	if j.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	if j.tree, err = j.root.OpenRoot("src"); err != nil {
		return errors.Join(err, j.root.Close())
	}
	if err = j.own(j.ctx); err != nil {
		return errors.Join(err, j.tree.Close(), j.root.Close())
	}
	return nil
}

// own gives the workspace's user the files that the server has written for the user's
// commands.
func (j *job) own(ctx context.Context) error {
	err := child.OwnOnce(ctx, j.home, j.user)
	if err == nil {
		err = child.Own(ctx, j.root.Name(), j.user)
	}
	if errors.Is(err, child.ErrTooDeep) {
		return build.Fail(build.ReasonSourceInvalid, "the files cannot be given to the user of the workspace: %s.", child.ErrTooDeep)
	}
	if err != nil {
		return fmt.Errorf("give files to the user of the workspace: %w", err)
	}
	return nil
}

// prepare makes the tree ready to start, in the way that the configuration asks for. The
// artifact means nothing if there is an error.
func (j *job) prepare(ctx context.Context, tree string, from commit, config framework.Config) (build.Artifact, error) {
	dir := filepath.Join(tree, config.Dir)
	if config.Build != nil && !j.inImage(config) {
		command := step{what: "the build command", text: config.BuildText, args: config.Build, dir: dir, reason: build.ReasonBuildCommandFailed}
		if err := j.runStep(ctx, command); err != nil {
			return build.Artifact{}, err
		}
	}
	if j.builder.cfg.Images != nil {
		return j.makeImage(ctx, tree, from, config)
	}
	j.record = build.NewRecord(string(config.Language))
	artifact := build.Artifact{
		Dir: dir, Start: config.Start, Env: config.Env, Graphs: config.Graphs, Descriptions: config.Descriptions, Auth: config.Auth, Encryption: config.Encryption, Settings: config.Settings,
		Own: []string{j.builder.dirOf(j.spec.Revision)}, Shared: append(j.builder.shared(), j.home),
	}
	var started build.Artifact
	var err error
	switch config.Language {
	case "":
		return artifact, nil
	case framework.Python:
		started, err = j.installPython(ctx, tree, config)
	case framework.Node:
		started, err = j.installNode(ctx, tree, config)
	}
	if err != nil {
		return build.Artifact{}, err
	}
	artifact.Start = started.Start
	artifact.Shared = append(artifact.Shared, started.Shared...)
	artifact.Env = map[string]string{}
	maps.Copy(artifact.Env, started.Env)
	maps.Copy(artifact.Env, config.Env)
	return artifact, nil
}

// note writes a line of the builder's own to the build log.
func (j *job) note(level revisionlog.Level, format string, args ...any) error {
	log, err := j.openLog()
	if err != nil {
		return err
	}
	return errors.Join(log.Note(level, format, args...), log.Close())
}

// openLog returns a writer for the output of one command.
func (j *job) openLog() (*files.Writer, error) {
	_, password := repository.CredentialsOf(j.spec)
	return j.builder.cfg.Logs.Writer(j.spec.Revision, revisionlog.Build, password)
}
