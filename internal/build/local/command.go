package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/slipway-run/slipway/internal/build"
	"github.com/slipway-run/slipway/internal/child"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// network names the variables of the server's environment that commands get too, because without them they may not reach package
// registries. Nothing else of it is passed on but PATH.
var network = []string{
	"GOPROXY", "GOFLAGS", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// passOn returns those of the variables that the server has, as NAME=value.
func passOn(names []string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// runBuildCommand runs the command of the configuration, if it has one, in the directory of the configuration file.
func (j *job) runBuildCommand(ctx context.Context, config config) error {
	if config.build == nil {
		return nil
	}
	if err := j.note(revisionlog.Info, "running the build command %s", config.buildText); err != nil {
		return err
	}
	env := append(passOn(slices.Concat(network, []string{"PATH"})),
		"HOME="+j.builder.cacheOf(j.spec.Workspace),
		"TMPDIR="+filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp"),
		"CI=true",
	)
	ran, err := j.exec(ctx, child.Command{Args: config.build, Dir: config.dir, Env: env})
	switch {
	case err != nil:
		return err
	case context.Cause(ctx) == errTimeout:
		return fail(build.ReasonBuildTimeout, "the build was stopped after %s, while the build command %s was running. %s",
			j.builder.cfg.Timeout, config.buildText, ran.lastWords())
	case ran.failed():
		return fail(build.ReasonBuildCommandFailed, "the build command %s %s. %s", config.buildText, ran.exit, ran.lastWords())
	}
	return nil
}

// outcome is how a command ended and what it printed last.
type outcome struct {
	exit child.Exit
	last string
}

func (o outcome) failed() bool { return o.exit != child.Exit{} }

// lastWords introduces the last lines in a message.
func (o outcome) lastWords() string {
	if o.last == "" {
		return "It printed nothing."
	}
	return "Its last output:\n" + o.last
}

// exec runs a command to its end, or kills it when ctx ends. What it prints goes to the build log, except a Stdout of its own.
func (j *job) exec(ctx context.Context, command child.Command) (outcome, error) {
	log, err := j.openLog()
	if err != nil {
		return outcome{}, err
	}
	if command.Stdout == nil {
		command.Stdout = log
	} else {
		command.Stderr = log
	}
	process, err := j.builder.children.Start(command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		// As a shell puts it: the command is wrong, not the server.
		return outcome{exit: child.Exit{Code: 127}, last: err.Error()}, log.Close()
	}
	if err != nil {
		return outcome{}, errors.Join(err, log.Close())
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		err = process.Kill()
	}
	exit, failed := process.Exit()
	err = errors.Join(err, failed, log.Close())
	return outcome{exit: exit, last: log.Last()}, err
}
