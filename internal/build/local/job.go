package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/revisionlog"
	"github.com/slipway-run/slipway/internal/revisionlog/files"
)

// job is one build that waits or runs.
type job struct {
	builder *Builder
	spec    build.Spec
	// ctx ends when the build is cancelled.
	ctx    context.Context
	cancel context.CancelFunc

	// done is closed when result and err are set.
	done   chan struct{}
	result build.Result
	// err is why the build has no result: the server's own trouble, not the repository's.
	err error
}

func newJob(b *Builder, spec build.Spec) *job {
	j := &job{builder: b, spec: spec, done: make(chan struct{}), result: build.Result{State: build.Absent}}
	j.ctx, j.cancel = context.WithCancel(context.Background())
	return j
}

// failure is an end of a build that the repository is to blame for.
type failure struct{ reason, message string }

func (f *failure) Error() string { return f.reason + ": " + f.message }

func fail(reason, format string, args ...any) *failure {
	return &failure{reason, fmt.Sprintf(format, args...)}
}

// run builds and stores the result. A build that was cancelled has none.
func (j *job) run() {
	defer j.cancel()
	began := time.Now()
	result, err := j.build()
	if j.ctx.Err() != nil {
		return
	}
	var failed *failure
	switch {
	case errors.As(err, &failed):
		result = build.Result{State: build.Failed, CommitSHA: result.CommitSHA, Reason: failed.reason, Message: failed.message}
		err = j.note(revisionlog.Error, "%s", failed.message)
	case err == nil:
		err = j.note(revisionlog.Info, "built in %s", time.Since(began).Round(time.Millisecond))
	}
	if err == nil {
		err = j.builder.writeResult(j.spec.Revision, result)
	}
	if err != nil {
		j.err = fmt.Errorf("build revision %s: %w", j.spec.Revision, err)
		return
	}
	j.result = result
}

// build does the work, from an empty directory.
func (j *job) build() (build.Result, error) {
	ctx, cancel := context.WithTimeoutCause(j.ctx, j.builder.cfg.Timeout, errTimeout)
	defer cancel()
	dir := j.builder.dirOf(j.spec.Revision)
	if err := child.RemoveFiles(dir); err != nil {
		return build.Result{}, err
	}
	tree := filepath.Join(dir, "src")
	if err := makeDirs(tree, filepath.Join(dir, "tmp"), j.builder.cacheOf(j.spec.Workspace)); err != nil {
		return build.Result{}, err
	}
	result := build.Result{State: build.Succeeded}
	var err error
	if result.CommitSHA, err = j.clone(ctx, tree); err != nil {
		return result, j.timedOut(ctx, "cloning the repository", err)
	}
	config, err := readConfig(tree, j.spec.ConfigPath)
	if err != nil {
		return result, err
	}
	for _, remark := range config.remarks {
		if err := j.note(revisionlog.Info, "%s", remark); err != nil {
			return result, err
		}
	}
	result.Artifact, err = j.prepare(ctx, tree, config)
	if err != nil {
		return result, err
	}
	return result, child.RemoveFiles(filepath.Join(dir, "tmp"))
}

// prepare makes the tree ready to start, in the way that the configuration asks for.
func (j *job) prepare(ctx context.Context, tree string, config config) (build.Artifact, error) {
	artifact := build.Artifact{
		Dir: config.dir, Start: config.start, Env: config.env, Graphs: config.graphs,
		Own: []string{j.builder.dirOf(j.spec.Revision)}, Shared: append(j.builder.shared(), j.builder.cacheOf(j.spec.Workspace)),
	}
	if config.build != nil {
		command := step{what: "the build command", text: config.buildText, args: config.build, dir: config.dir, reason: build.ReasonBuildCommandFailed}
		if err := j.runStep(ctx, command); err != nil {
			return artifact, err
		}
	}
	var started launch
	var err error
	switch config.runtime {
	case "":
		return artifact, nil
	case python:
		started, err = j.installPython(ctx, tree, config)
	case node:
		started, err = j.installNode(ctx, tree, config)
	}
	artifact.Start = started.args
	artifact.Env = maps.Clone(started.env)
	maps.Copy(artifact.Env, config.env)
	return artifact, err
}

// launch is how a runtime is started: its arguments, and what it needs in its environment.
type launch struct {
	args []string
	env  map[string]string
}

var errTimeout = errors.New("the build's time is over")

// timedOut replaces an error by the one that caused it, when the build's time is over.
func (j *job) timedOut(ctx context.Context, doing string, err error) error {
	if context.Cause(ctx) != errTimeout {
		return err
	}
	return fail(build.ReasonBuildTimeout, "the build was stopped after %s, while %s.", j.builder.cfg.Timeout, doing)
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
	return j.builder.cfg.Logs.Writer(j.spec.Revision, revisionlog.Build, credentialsOf(j.spec).password)
}
