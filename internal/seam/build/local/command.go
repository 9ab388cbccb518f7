package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// network names the variables of the server's environment that commands get too, because without them they may not reach package
// registries. Nothing else of it is passed on but PATH.
var network = []string{
	"GOPROXY", "GOFLAGS", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_PYTHON_INSTALL_MIRROR",
	"NPM_CONFIG_REGISTRY", "npm_config_registry", "NODE_EXTRA_CA_CERTS",
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

// step is a command of a build.
type step struct {
	// what the step does ("the build command"), text what to call the command.
	what, text string
	args       []string
	dir        string
	// env is added to what every command gets.
	env []string
	// reason is that of a failure.
	reason string
	// platform tells that the command is not the repository's and changes what all builds share.
	platform bool
}

// shared are the directories that all builds read.
func (b *Builder) shared() []string {
	return []string{filepath.Join(b.cfg.Dir, "runtimes"), filepath.Join(b.cfg.Dir, "tools")}
}

// confinement keeps a command of the repository from all that is not its build's.
func (j *job) confinement(s step) child.Confinement {
	if s.platform {
		return child.Confinement{}
	}
	b := j.builder
	return child.Confinement{
		Private: b.cfg.Private, Read: append(b.shared(), b.recordOf(j.spec.Revision), b.keptOf(j.spec.Workspace)),
		Write: []string{b.dirOf(j.spec.Revision), j.home},
	}
}

// runStep runs a command to its end. One that fails is the repository's fault.
func (j *job) runStep(ctx context.Context, s step) error {
	if err := j.note(revisionlog.Info, "running %s %s", s.what, s.text); err != nil {
		return err
	}
	ran, err := j.exec(ctx, child.Command{Args: s.args, Dir: s.dir, Env: append(j.environment(s), s.env...), Confine: j.confinement(s)})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return cmp.Or(j.stopped(ctx, fmt.Sprintf("%s %s was running. %s", s.what, s.text, ran.lastWords())), ctx.Err())
	case ran.exit.OutOfMemory:
		return build.Fail(build.ReasonOutOfMemory, "%s %s was stopped because it used more than the %d MB of memory that a build may. %s",
			s.what, s.text, j.builder.cfg.MemoryMB, ran.lastWords())
	case ran.failed():
		return build.Fail(s.reason, "%s %s %s. %s", s.what, s.text, ran.exit, ran.lastWords())
	}
	return nil
}

// temp is the build's directory for temporary files.
func (j *job) temp() string { return filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp") }

// environment is what every command of a build gets. The platform's own have a home where no build could leave settings for them.
func (j *job) environment(s step) []string {
	env := append(passOn(slices.Concat(network, []string{"PATH"})), "CI=true")
	if s.platform {
		return append(env, "HOME="+filepath.Join(j.builder.cfg.Dir, "tools", "home"))
	}
	return append(env, "HOME="+j.home, "TMPDIR="+j.temp())
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
	command.Limits = j.builder.limits()
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
