package local

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
)

// gitNetwork names the variables of the server's environment that git gets. The variables of
// proxies are not among them: the builder's own proxy connects through these proxies.
var gitNetwork = []string{"PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"}

// environment returns the whole environment of git and of the programs that git starts. It
// contains the credentials, because others cannot read it, while they can read a command line.
// Submodules get it, too.
func (g git) environment() []string {
	builder := g.job.builder
	home := builder.gitHome()
	env := append(passOn(gitNetwork),
		"HOME="+home,
		"TMPDIR="+g.job.temp(),
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+filepath.Join(home, "config"),
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=",
		"GIT_ALLOW_PROTOCOL="+builder.protocols(g.repo.Protocols),
		"GIT_SSH_COMMAND="+g.ssh(),
		"GIT_SSH_VARIANT=ssh",
		"GIT_HTTP_PROXY_AUTHMETHOD=basic",
		outbound.ProxyVariable+"="+g.pass.URL(),
	)
	for _, name := range []string{"http_proxy", "https_proxy", "all_proxy"} {
		env = append(env, name+"="+g.pass.URL())
	}
	if builder.cfg.OperatorSSH {
		env = append(env, passOn([]string{"SSH_AUTH_SOCK"})...)
	}
	if !g.repo.Given() {
		return env
	}
	return append(env,
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=credential."+g.repo.Scope+".helper",
		"GIT_CONFIG_VALUE_0="+credentialHelper,
		"SLIPWAY_GIT_USERNAME="+g.repo.Username,
		"SLIPWAY_GIT_PASSWORD="+g.repo.Password,
	)
}

// protocols returns the protocols of a repository, without ssh if no command makes connections
// for ssh.
func (b *Builder) protocols(all string) string {
	if len(b.cfg.Connect) > 0 {
		return all
	}
	return strings.ReplaceAll(all, repository.Network, "https:http")
}

// ssh returns the command that git runs for ssh. It never asks a question, and does not wait
// long. It trusts a host that it sees for the first time, and does not trust a host that
// changed its key. The proxy makes the connections, unless every address is permitted: then
// the operator's own configuration may say how they are made.
func (g git) ssh() string {
	cfg := g.job.builder.cfg
	args := []string{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "StrictHostKeyChecking=accept-new"}
	if !cfg.OperatorSSH {
		args = append(args, "-F", "/dev/null", "-o", "IdentitiesOnly=yes", "-o", "IdentityFile=none", "-o", "IdentityAgent=none",
			"-o", "UserKnownHostsFile="+filepath.Join(g.job.temp(), "known_hosts"))
	}
	if !cfg.OperatorSSH || !cfg.Networks.All() {
		connect := make([]string, len(cfg.Connect))
		for i, arg := range cfg.Connect {
			connect[i] = build.ShellWord(strings.ReplaceAll(arg, "%", "%%"))
		}
		args = append(args, "-o", "ProxyCommand="+strings.Join(connect, " ")+" %h %p")
	}
	for i, arg := range args {
		args[i] = build.ShellWord(arg)
	}
	return strings.Join(args, " ")
}

// trouble returns the rest of a sentence, with the proxy's reason for the failed connection,
// or "".
func (g git) trouble() string {
	if host := g.pass.Refused(); host != "" {
		return fmt.Sprintf(": the address of %s is not a public one, and this server's --private-addresses do not permit it", host)
	}
	if err := g.pass.Failed(); err != nil {
		return fmt.Sprintf(": it cannot be reached: %s", err)
	}
	return ""
}

// remoteMark is the beginning of the lines in which git repeats the answer of a server,
// including the body of an error. These lines would show a tenant the answers of hosts that
// only this server reaches.
const remoteMark = "remote:"

// withoutRemote passes on all lines except the lines that repeat a server's answer.
func withoutRemote(to io.Writer) io.Writer { return &remoteFilter{to: to} }

type remoteFilter struct {
	to io.Writer
	// start are the first bytes of a line that may become the mark. in is set within a line
	// that the filter has decided about, drop within a line that is left out.
	start    []byte
	in, drop bool
}

func (f *remoteFilter) Write(p []byte) (int, error) {
	for line := range bytes.SplitAfterSeq(p, []byte{'\n'}) {
		if err := f.write(line); err != nil {
			return 0, err
		}
		if bytes.HasSuffix(line, []byte{'\n'}) {
			f.in, f.drop, f.start = false, false, nil
		}
	}
	return len(p), nil
}

// write takes a piece of one line.
func (f *remoteFilter) write(piece []byte) error {
	if !f.in {
		f.start = append(f.start, piece...)
		if len(f.start) < len(remoteMark) && strings.HasPrefix(remoteMark, string(f.start)) {
			return nil // it may still become the mark
		}
		piece, f.start, f.in = f.start, nil, true
		f.drop = bytes.HasPrefix(piece, []byte(remoteMark))
	}
	if f.drop {
		return nil
	}
	_, err := f.to.Write(piece)
	return err
}
