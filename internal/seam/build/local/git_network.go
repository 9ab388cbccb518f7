package local

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
)

// gitNetwork names the variables of the server's environment that git gets. The proxies are not
// among them: the builder's own proxy goes through them.
var gitNetwork = []string{"PATH", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"}

// environment is all that git and the programs it starts get. Credentials travel here because
// others cannot read it, as they can a command line. Submodules get it, too.
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

// protocols are those of a repository without ssh, if nothing makes connections for that.
func (b *Builder) protocols(all string) string {
	if len(b.cfg.Connect) > 0 {
		return all
	}
	return strings.ReplaceAll(all, repository.Network, "https:http")
}

// ssh is the command that git runs for ssh. It never asks, and does not wait long. A host that is
// seen for the first time is trusted, one that changed its key is not. Connections are made by the
// proxy, unless every address is permitted: then the operator's own configuration may say how.
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
			connect[i] = shellQuote(strings.ReplaceAll(arg, "%", "%%"))
		}
		args = append(args, "-o", "ProxyCommand="+strings.Join(connect, " ")+" %h %p")
	}
	for i, arg := range args {
		args[i] = shellQuote(arg)
	}
	return strings.Join(args, " ")
}

// shellQuote makes one word of a shell of a text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// trouble continues a sentence with what the proxy knows of the connection that failed, or is
// empty.
func (g git) trouble() string {
	if host := g.pass.Refused(); host != "" {
		return fmt.Sprintf(": the address of %s is not a public one, and this server's --private-addresses do not permit it", host)
	}
	if err := g.pass.Failed(); err != nil {
		return fmt.Sprintf(": it cannot be reached: %s", err)
	}
	return ""
}

// remoteMark begins the lines of git's that repeat what a server has answered, the body of an error
// included. That would show a tenant the answers of hosts that only the server reaches.
const remoteMark = "remote:"

// withoutRemote passes on all lines but those that repeat a server's answer.
func withoutRemote(to io.Writer) io.Writer { return &remoteFilter{to: to} }

type remoteFilter struct {
	to io.Writer
	// start are the first bytes of a line that may become the mark; in is set within a line that
	// was decided about, drop in one that is left out.
	start    []byte
	in, drop bool
}

func (f *remoteFilter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		if ended {
			line = rest[:len(line)+1]
		}
		if err := f.write(line); err != nil {
			return 0, err
		}
		if ended {
			f.in, f.drop, f.start = false, false, nil
		}
		rest = after
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
