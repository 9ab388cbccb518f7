package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// gitConfig is the whole configuration that git reads: the configuration of the system and of
// the user, and their credential helpers, are left out. A repository may belong to another
// user, because cloning only reads it. A transfer that stalls ends after half a minute. git
// follows a redirect only as the first answer of a host. It makes each connection through the
// proxy, also for a redirect. The protocols that git may use are in its environment. git keeps the
// pack that it fetches: to compress each file of it again would take twice as long.
const gitConfig = `[safe]
	directory = *
[core]
	hooksPath = /dev/null
	askPass =
[credential]
	helper =
[http]
	lowSpeedLimit = 1000
	lowSpeedTime = 30
	followRedirects = initial
[submodule]
	recurse = false
[protocol]
	allow = never
[advice]
	detachedHead = false
[init]
	defaultBranch = main
	templateDir =
[fetch]
	unpackLimit = 1
[gc]
	auto = 0
[maintenance]
	auto = false
`

// credentialHelper is the command that git runs to get the credentials. It prints them from
// its environment, with the shell's own printf.
const credentialHelper = `!f() { if [ "$1" = get ]; then printf 'username=%s\npassword=%s\n' "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; fi; }; f`

// noSuchRef is the exit code of git ls-remote --exit-code if the repository answers but does
// not have the ref.
const noSuchRef = 2

func (b *Builder) gitHome() string { return filepath.Join(b.cfg.Dir, "git") }

// prepareGit writes git's configuration. A file with the same configuration stays, so that a server
// starts although its disk is full.
func (b *Builder) prepareGit() error {
	if err := makeReadable(b.gitHome()); err != nil {
		return err
	}
	file := filepath.Join(b.gitHome(), "config")
	if kept, err := os.ReadFile(file); err == nil && string(kept) == gitConfig {
		return os.Chmod(file, 0o644)
	}
	return replaceFile(file, []byte(gitConfig))
}

// git is one clone: a repository and the tree that it goes into.
type git struct {
	job  *job
	repo repository.Repository
	tree string
	// pass lets git connect to hosts.
	pass *outbound.Pass
}

// commit is the commit that was cloned. The builder asks git everything about it before a
// command of the repository could change the behaviour of git.
type commit struct {
	id, url string
	made    time.Time
}

// clone puts the commit that the ref names into the tree, with its submodules and without history.
func (j *job) clone(ctx context.Context, tree string) (commit, error) {
	repo, err := repository.ParseHere(j.spec, j.builder.cfg.LocalRepositories)
	if err != nil {
		return commit{}, err
	}
	if err := j.note(revisionlog.Info, "cloning %s at %s", repo.URL, j.spec.Ref); err != nil {
		return commit{}, err
	}
	pass := j.builder.proxy.NewPass()
	defer pass.Close()
	g := git{j, repo, tree, pass}
	if err := g.refusePrivate(); err != nil {
		return commit{}, err
	}
	ref := repository.FullRef(j.spec.Ref)
	if j.spec.Commit != "" {
		ref = j.spec.Commit
	}
	if err := g.findRef(ctx, ref); err != nil {
		return commit{}, err
	}
	fetched, err := g.fetch(ctx, ref)
	if err != nil {
		return commit{}, err
	}
	if err := j.note(revisionlog.Info, "commit %s", fetched.id); err != nil {
		return commit{}, err
	}
	if err := g.checkPaths(ctx, fetched.id); err != nil {
		return fetched, err
	}
	return fetched, g.checkOut(ctx, fetched.id)
}

// refusePrivate refuses a repository of this machine that is one of the server's own files:
// the path itself, or a path that git would take for it. It also refuses a repository that git
// cannot read as the workspace's user.
func (g git) refusePrivate() error {
	if _, err := os.Stat(g.repo.Path); g.repo.Path != "" && err == nil && g.user() != 0 && !child.Reaches(g.repo.Path) {
		return build.Fail(build.ReasonRepoUnreachable,
			"the repository %s is where only its owner may enter. Let everybody read it, or upload the directory with slipway deploy.", g.repo.URL)
	}
	private := g.job.builder.cfg.Private
	if g.repo.Path == "" || private == "" {
		return nil
	}
	private, err := filepath.EvalSymlinks(private)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"", ".git", "/.git", ".git/.git"} {
		path, err := filepath.EvalSymlinks(g.repo.Path + suffix)
		if err != nil {
			continue // git will report that it is not there
		}
		if inside, err := filepath.Rel(private, path); err == nil && filepath.IsLocal(inside) {
			return build.Fail(build.ReasonRepoUnreachable, "the repository %s is in the server's own directory, from which nothing is cloned.", g.repo.URL)
		}
	}
	return nil
}

// findRef checks that the repository can be reached and that it has the ref. It does not check
// this for a commit, because only a fetch can find out whether the repository has the commit.
// git reports both with exit codes, so no messages of git are parsed.
func (g git) findRef(ctx context.Context, ref string) error {
	reach, cancel := context.WithTimeout(ctx, g.job.builder.cfg.ReachLimit)
	defer cancel()
	var refs bytes.Buffer
	ran, err := g.run(reach, &refs, "ls-remote", "--exit-code", "--", g.repo.URL, ref)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case reach.Err() != nil:
		return build.Fail(build.ReasonRepoUnreachable, "the repository %s did not answer within %s. %s",
			g.repo.URL, g.job.builder.cfg.ReachLimit, ran.lastWords())
	case err != nil:
		return err
	case ran.exit.Code != 0 && ran.exit.Code != noSuchRef:
		return g.unreachable(ran)
	case g.job.spec.Commit != "":
		return nil
	}
	// git also lists refs that end in the name that was asked for.
	for line := range strings.Lines(refs.String()) {
		if _, name, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == ref {
			return nil
		}
	}
	kind, name := "ref", ref
	if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		kind, name = "branch", branch
	} else if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
		kind, name = "tag", tag
	}
	return build.Fail(build.ReasonRefNotFound, "the repository %s has no %s named %q.", g.repo.URL, kind, name)
}

// unreachable returns the failure of a clone. The builder knows better than git why a
// connection failed.
func (g git) unreachable(ran outcome) error {
	if why := g.trouble(); why != "" {
		return build.Fail(build.ReasonRepoUnreachable, "the repository %s cannot be cloned%s. %s", g.repo.URL, why, ran.lastWords())
	}
	credentials := "no credentials are known for it"
	if g.repo.Given() {
		credentials = "it may have refused the credentials"
	}
	return build.Fail(build.ReasonRepoUnreachable, "the repository %s cannot be cloned: it does not exist, cannot be reached, or %s. %s",
		g.repo.URL, credentials, ran.lastWords())
}

// fetch gets the commit that the ref names; an annotated tag stands for its commit.
func (g git) fetch(ctx context.Context, ref string) (commit, error) {
	// Submodules with relative addresses are looked up from the remote that is named origin.
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "--", "origin", g.repo.URL}} {
		if err := g.mustRun(ctx, args...); err != nil {
			return commit{}, err
		}
	}
	ran, err := g.run(ctx, nil, "fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", ref)
	switch {
	case err != nil:
		return commit{}, err
	case ran.failed() && g.job.spec.Commit != "":
		return commit{}, build.Fail(build.ReasonRefNotFound, "the repository %s does not give out the commit %s any more. %s", g.repo.URL, ref, ran.lastWords())
	case ran.failed():
		return commit{}, g.unreachable(ran)
	}
	var shown strings.Builder
	ran, err = g.run(ctx, &shown, "log", "-1", "--format=%H %cI", "FETCH_HEAD^{commit}")
	switch {
	case err != nil:
		return commit{}, err
	case ran.failed():
		return commit{}, build.Fail(build.ReasonRefNotFound, "%s of the repository %s does not name a commit.", ref, g.repo.URL)
	}
	id, date, _ := strings.Cut(strings.TrimSpace(shown.String()), " ")
	fetched := commit{id: id, url: g.repo.URL}
	fetched.made, err = time.Parse(time.RFC3339, date)
	return fetched, err
}

// checkOut writes the commit's files and the files of its submodules.
func (g git) checkOut(ctx context.Context, commit string) error {
	if err := g.mustRun(ctx, "checkout", "-q", "--detach", commit); err != nil {
		return err
	}
	if err := g.refusePointers(ctx, commit); err != nil {
		return err
	}
	_, err := os.Lstat(filepath.Join(g.tree, ".gitmodules"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ran, err := g.run(ctx, nil, "submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
	if err == nil && ran.failed() {
		return build.Fail(build.ReasonRepoUnreachable, "a submodule of the repository %s cannot be cloned%s. %s", g.repo.URL, g.trouble(), ran.lastWords())
	}
	return err
}

// mustRun runs a command that fails only because of a fault of the server, for example a full
// disk.
func (g git) mustRun(ctx context.Context, args ...string) error {
	ran, err := g.run(ctx, nil, args...)
	if err == nil && ran.failed() {
		return fmt.Errorf("git %s %s: %s", args[0], ran.exit, ran.last)
	}
	return err
}

// run runs git in the tree. git reads files of strangers, including a repository of this
// machine with its configuration. It reaches no more of the server's files than the build
// does. If ctx has ended, the error says so.
func (g git) run(ctx context.Context, stdout io.Writer, args ...string) (outcome, error) {
	builder := g.job.builder
	program, err := builder.tools.need("git", "")
	if err != nil {
		return outcome{}, err
	}
	ran, err := g.job.exec(ctx, child.Command{
		Args: append([]string{program}, args...), Dir: g.tree, Env: g.environment(), Stdout: stdout,
		Confine: child.Confinement{Private: builder.cfg.Private, Read: append(filesOf(network), builder.gitHome()), Write: []string{builder.dirOf(g.job.spec.Revision)}, User: g.user(), Ports: anyPort},
	}, withoutRemote)
	return ran, cmp.Or(ctx.Err(), err)
}

// user returns the user that runs git: the workspace's user, except for ssh, which refuses a
// user that has no name on the machine.
func (g git) user() int {
	for _, prefix := range []string{"http://", "https://", "git://", "file://", "/"} {
		if strings.HasPrefix(g.repo.URL, prefix) {
			return g.job.user
		}
	}
	return 0
}
