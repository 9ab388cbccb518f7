package local_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// strict configures the builder of a server that others can reach: nothing is permitted.
func strict(c *local.Config) { c.Networks, c.LocalRepositories, c.OperatorSSH = nil, false, false }

// trap is a listener of this machine that no git may connect to.
func trap(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, listener.Close()) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Errorf("git connected to %s", conn.LocalAddr())
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// TestAttackGitReachesNoPrivateAddress uses addresses of this machine and of other private
// networks, under names and in forms that different programs read differently.
func TestAttackGitReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	m := newMachine(t, strict)
	_, port, err := net.SplitHostPort(trap(t))
	check.Must(t, err)
	for _, url := range []string{
		"http://127.0.0.1:%s/v2/deployments", "https://127.0.0.1:%s/", "http://localhost:%s/", "http://2130706433:%s/", "http://0.0.0.0:%s/",
		"http://[::ffff:127.0.0.1]:%s/", "http://127.1:%s/", "https://0x7f.1:%s/", "ssh://git@127.0.0.1:%s/repo.git", "ssh://git@localhost:%s/repo.git",
	} {
		m.wantFailure(t, buildtest.NewSpec(fmt.Sprintf(url, port)), build.ReasonRepoUnreachable, "cannot be cloned")
	}
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "https://10.0.0.1/repo.git", "ssh://git@192.168.0.1/repo.git", "http://[fd00:ec2::254]/latest"} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "is not a public one", "--private-addresses")
	}
	m.wantFailure(t, buildtest.NewSpec("git://127.0.0.1:"+port+"/repo.git"), build.ReasonRepoUnreachable, "none that git can clone from here")
}

// TestAttackGitFollowsNoRedirectToAPrivateAddress uses a server that git may reach, and that
// sends git to a server that git may not reach: by a redirect of the first request, and of a
// later request.
func TestAttackGitFollowsNoRedirectToAPrivateAddress(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) {
		strict(c)
		c.Networks = outbound.Networks{netip.MustParsePrefix("127.0.0.2/32")}
	})
	inner := trap(t)
	var asked atomic.Int32
	outer := serveAt(t, "127.0.0.2", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "http://"+inner+"/repo.git/info/refs?service=git-upload-pack", http.StatusMovedPermanently)
	}))
	m.wantFailure(t, buildtest.NewSpec(outer+"/repo.git"), build.ReasonRepoUnreachable, "the address of 127.0.0.1")
	if asked.Load() == 0 {
		t.Error("the server that may be reached was not")
	}
}

// serveAt serves on an address of this machine.
func serveAt(t *testing.T, host string, handler http.Handler) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	check.Must(t, err)
	server := httptest.NewUnstartedServer(handler)
	check.Must(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// TestAttackSubmodulesGoNoFurther uses a repository that may be cloned, with submodules at
// addresses that are not permitted.
func TestAttackSubmodulesGoNoFurther(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) {
		strict(c)
		c.Networks = outbound.Networks{netip.MustParsePrefix("127.0.0.2/32")}
	})
	inner := buildtest.NewRepo(t, map[string]string{"data.txt": "inner"})
	address := trap(t)
	for url, words := range map[string]string{
		"http://" + address + "/repo.git":    "the address of 127.0.0.1",
		"ssh://git@" + address + "/repo.git": "the address of 127.0.0.1",
		inner.URL():                          "transport 'file' not allowed",
		"git://" + address + "/repo.git":     "transport 'git' not allowed",
		"ext::sh -c true":                    "cannot be cloned",
	} {
		outer := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
		outer.Git("submodule", "add", "-q", inner.URL(), "lib")
		outer.Git("config", "-f", ".gitmodules", "submodule.lib.url", url)
		outer.Commit(nil)
		host := serveAt(t, "127.0.0.2", gitHandler(t, filepath.Dir(outer.Dir)))
		m.wantFailure(t, buildtest.NewSpec(host+"/repo.git"), build.ReasonRepoUnreachable, "a submodule", words)
	}
}

// TestAttackARepositoryConfiguresNoGit uses a repository that contains configuration files
// that git, or an extension of git, could read.
func TestAttackARepositoryConfiguresNoGit(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	address := trap(t)
	r := buildtest.NewRepo(t, map[string]string{
		"framework.json": buildtest.Framework("true"),
		".gitconfig":     "[url \"http://" + address + "/\"]\n\tinsteadOf = http://\n[core]\n\tsshCommand = false\n",
		".lfsconfig":     "[lfs]\n\turl = http://" + address + "/lfs\n",
		".gitattributes": "large filter=lfs diff=lfs merge=lfs -text\n",
		"large":          "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 5\n",
	})
	spec := buildtest.NewSpec(serveGit(t, filepath.Dir(r.Dir), false) + "/repo.git")
	m.wantFailure(t, spec, build.ReasonSourceInvalid, `the file "large" is in Git LFS`)
}

// TestAttackDirectoriesOfTheMachine checks that no directory of the machine is cloned if the
// operator did not permit it.
func TestAttackDirectoriesOfTheMachine(t *testing.T) {
	t.Parallel()
	m := newMachine(t, strict)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	for _, url := range []string{r.URL(), r.Dir, strings.Replace(r.URL(), "file:", "FILE:", 1)} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "--local-repositories")
	}
	for _, url := range []string{"file://localhost" + r.Dir, "../repo.git", "ext::sh -c true", "fd::17", "--upload-pack=touch /tmp/x"} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "none that git can clone from here")
	}
}

// TestAttackTheOperatorsIdentityIsNotLent checks the environment and the arguments that ssh is
// started with.
func TestAttackTheOperatorsIdentityIsNotLent(t *testing.T) {
	t.Parallel()
	for own, want := range map[bool]string{false: "[] ", true: "[" + os.Getenv("SSH_AUTH_SOCK") + "] "} {
		m := newMachine(t, func(c *local.Config) { c.OperatorSSH = own })
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check.Must(t, err)
		greeting := make(chan string, 16)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				text := make([]byte, 8)
				_, _ = io.ReadFull(conn, text)
				greeting <- string(text)
				conn.Close()
			}
		}()
		name := fmt.Sprintf("own-%v.git", own)
		spec := buildtest.NewSpec("ssh://git@" + listener.Addr().String() + "/" + name)
		m.wantFailure(t, spec, build.ReasonRepoUnreachable, "cannot be cloned")
		check.Must(t, listener.Close())
		select {
		case got := <-greeting:
			if got != "SSH-2.0-" {
				t.Errorf("the host was greeted with %q", got)
			}
		default:
			t.Error("ssh did not reach a host that may be reached")
		}
		calls, err := os.ReadFile(filepath.Join(m.cfg.Dir, "revisions", spec.Revision, sshCalls))
		check.Must(t, err)
		for line := range strings.Lines(string(calls)) {
			if !strings.Contains(line, name) {
				continue
			}
			lent := !strings.Contains(line, "-F /dev/null -o IdentitiesOnly=yes -o IdentityFile=none -o IdentityAgent=none")
			if !strings.HasPrefix(line, want) || lent != own {
				t.Errorf("with the operator's identity %v, ssh was started as %s", own, line)
			}
		}
		if !strings.Contains(string(calls), name) {
			t.Errorf("ssh was not started for %s", name)
		}
	}
}

// TestAttackAnswersAreNotRepeated uses a server whose error answers contain text that only
// this server may read.
func TestAttackAnswersAreNotRepeated(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(map[bool]int{true: http.StatusForbidden, false: http.StatusNotFound}[strings.Contains(r.URL.Path, "forbidden")])
		_, _ = io.WriteString(w, "\n\nplanted-answer one\r\rplanted-answer two\nremote: planted-answer three\n\nplanted-answer four")
	}))
	t.Cleanup(host.Close)
	for _, path := range []string{"/missing.git", "/forbidden.git"} {
		spec := buildtest.NewSpec(host.URL + path)
		got := m.wantFailure(t, spec, build.ReasonRepoUnreachable, "cannot be cloned")
		if strings.Contains(got.Message, "planted-answer") || strings.Contains(m.log(t, spec), "planted-answer") {
			t.Errorf("the answer is repeated: %s\n%s", got.Message, m.log(t, spec))
		}
	}
}

// TestAttackRefsAndAddressesAreNoOptions uses texts that git would take for options, refspecs
// or further lines.
func TestAttackRefsAndAddressesAreNoOptions(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	mark := filepath.Join(t.TempDir(), "mark")
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	for _, url := range []string{
		"ext::touch " + mark, "fd::0", "-oProxyCommand=touch " + mark, "--upload-pack=touch " + mark, "-u touch " + mark, "ssh://-oProxyCommand=touch " + mark + "/x",
		"ssh://git@-oProxyCommand=touch/" + mark, "git@-oProxyCommand=touch:x", "http://127.0.0.1:1/x\nurl = file:///etc", "ftp://127.0.0.1/x", "HTTP+unix://x/y",
	} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable)
	}
	for _, ref := range []string{"--upload-pack=touch " + mark, "+refs/heads/*:refs/heads/*", "main:refs/heads/other", "refs/heads/main\nfile:///etc", "-h", "main~1", "^main"} {
		spec := buildtest.NewSpec(r.URL())
		spec.Ref = ref
		m.wantFailure(t, spec, build.ReasonRefNotFound)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command of the address was run")
	}
}
