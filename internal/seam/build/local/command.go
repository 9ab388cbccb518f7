package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// network names the variables of the server's environment that commands get too, because
// without these variables they may not reach package registries. PATH is the only other
// variable that is passed on.
var network = []string{
	"GOPROXY", "GOFLAGS", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOPRIVATE",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_PYTHON_INSTALL_MIRROR",
	"NPM_CONFIG_REGISTRY", "npm_config_registry", "NODE_EXTRA_CA_CERTS",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// passOn returns the variables among names that the server has, as NAME=value.
func passOn(names []string) []string {
	var env []string
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// filesOf returns the files and directories that variables of the server's environment name,
// for example certificates.
func filesOf(names []string) []string {
	var paths []string
	for _, name := range names {
		for _, path := range pathsIn(os.Getenv(name)) {
			if filepath.IsAbs(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// pathsIn returns the paths in a variable: a list of paths, or URLs of which file:// has a path.
// A colon of a URL separates nothing.
func pathsIn(value string) []string {
	if !strings.Contains(value, "://") {
		return filepath.SplitList(value)
	}
	var paths []string
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '|' }) {
		if _, path, isFile := strings.Cut(word, "file://"); isFile {
			paths = append(paths, path)
		} else if !strings.Contains(word, "://") {
			paths = append(paths, word)
		}
	}
	return paths
}

// step is a command of a build.
type step struct {
	// what describes the step ("the build command"). text is the name of the command.
	what, text string
	args       []string
	dir        string
	// env is added to the environment that every command gets.
	env []string
	// reason is the reason of a failure.
	reason string
	// platform reports whether the command is the platform's, not the repository's, and
	// changes files that all builds share.
	platform bool
}

// shared returns the directories that all builds read.
func (b *Builder) shared() []string {
	return []string{filepath.Join(b.cfg.Dir, "runtimes"), filepath.Join(b.cfg.Dir, "tools")}
}

// anyPort lets a command listen only on a port that the system chooses: no command takes the
// port that an agent is about to get.
var anyPort = []uint16{0}

// confinement keeps a command of the repository from all files that are not its build's. A
// platform step runs as the server's user and changes only files that all builds share.
func (j *job) confinement(s step) child.Confinement {
	b := j.builder
	if s.platform {
		return child.Confinement{Private: b.cfg.Private, Write: b.shared(), Ports: anyPort}
	}
	return child.Confinement{
		Private: b.cfg.Private, Read: append(append(b.shared(), b.recordOf(j.spec.Revision), b.keptOf(j.spec.Workspace)), filesOf(network)...),
		Write: []string{b.dirOf(j.spec.Revision), j.home}, User: j.user, Ports: anyPort,
	}
}

// runStep runs a command to its end. If the command fails, it is the repository's fault.
func (j *job) runStep(ctx context.Context, s step) error {
	if refuse := j.builder.cfg.Refuse; refuse != nil && !s.platform {
		why, err := refuse(ctx)
		if err != nil {
			return err
		}
		if why != "" {
			return build.Fail(s.reason, "%s %s is not run: %s", s.what, s.text, why)
		}
	}
	if err := j.note(revisionlog.Info, "running %s %s", s.what, s.text); err != nil {
		return err
	}
	ran, err := j.exec(ctx, child.Command{Args: s.args, Dir: s.dir, Env: append(j.environment(s), s.env...), Confine: j.confinement(s)}, nil)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return cmp.Or(stopped(ctx, fmt.Sprintf("%s %s was running. %s", s.what, s.text, ran.lastWords())), ctx.Err())
	case ran.exit.OutOfMemory:
		return build.Fail(build.ReasonOutOfMemory, "%s %s was stopped because it used more than the %d MB of memory that a build may. %s",
			s.what, s.text, j.builder.cfg.MemoryMB, ran.lastWords())
	case ran.failed():
		return build.Fail(s.reason, "%s %s %s. %s", s.what, s.text, ran.exit, ran.lastWords())
	}
	return nil
}

// temp returns the build's directory for temporary files.
func (j *job) temp() string { return filepath.Join(j.builder.dirOf(j.spec.Revision), "tmp") }

// environment returns the environment that every command of a build gets. Platform steps have
// a home where no build could leave settings for them. Only platform steps get the credentials
// in the addresses of proxies and registries.
func (j *job) environment(s step) []string {
	variables := passOn(network)
	if s.platform {
		shared := filepath.Join(j.builder.cfg.Dir, "tools")
		return append(variables, "CI=true", "PATH="+j.builder.tools.path, "HOME="+filepath.Join(shared, "home"), "TMPDIR="+filepath.Join(shared, "tmp"))
	}
	for i, variable := range variables {
		variables[i] = build.WithoutCredentials(variable)
	}
	// The data directory may lie in a repository, whose state Go would try to read.
	flags := build.WithoutCredentials("GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -buildvcs=false"))
	return append(variables, flags, "CI=true", "PATH="+os.Getenv("PATH"), "HOME="+j.home, "TMPDIR="+j.temp())
}

// outcome is the exit of a command and its last output.
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

// exec runs a command to its end, or kills it when ctx ends. The output of the command goes to
// the build log, except a Stdout of its own. It passes the filter before, if there is one.
func (j *job) exec(ctx context.Context, command child.Command, filter func(log io.Writer) io.Writer) (outcome, error) {
	log, err := j.openLog()
	if err != nil {
		return outcome{}, err
	}
	to := io.Writer(log)
	if filter != nil {
		to = filter(log)
	}
	if command.Stdout == nil {
		command.Stdout = to
	} else {
		command.Stderr = to
	}
	command.Limits = child.Limits{MemoryMB: j.builder.cfg.MemoryMB, Processes: processLimit}
	process, err := j.builder.children.Start(command)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		// The exit code is the same as in a shell: the command is wrong, not the server.
		return outcome{exit: child.Exit{Code: 127}, last: err.Error()}, log.Close()
	}
	if err != nil {
		return outcome{}, errors.Join(err, log.Close())
	}
	j.running.Store(process)
	defer j.running.Store(nil)
	select {
	case <-process.Done():
	case <-ctx.Done():
		err = process.Kill()
	}
	exit, failed := process.Exit()
	err = errors.Join(err, failed, log.Close())
	return outcome{exit: exit, last: log.Last()}, err
}
