package push_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/push"
)

func TestARepositoryHasOneName(t *testing.T) {
	t.Parallel()
	for want, urls := range map[string][]string{
		"github.com/acme/agent": {
			"https://github.com/acme/agent", "https://github.com/acme/agent.git", "https://github.com/acme/agent/", "https://github.com/acme/agent.git/",
			"https://GitHub.com/Acme/Agent.GIT", "http://github.com:80/acme/agent", "https://github.com:443/acme/agent", "https://ada:hush@github.com/acme/agent",
			"ssh://git@github.com/acme/agent.git", "ssh://git@github.com:22/acme/agent", "git://github.com:9418/acme/agent.git", "git@github.com:acme/agent.git",
			"git@github.com:/acme/agent", "github.com:acme/agent", "https://github.com//acme/./agent", "https://github.com/x/../acme/agent",
			"https://github.com/acme/agent?x=y#z", "https://github.com/%61cme/agent",
		},
		"git.example.com:8443/group/sub/agent": {"https://git.example.com:8443/group/sub/agent.git"},
		"git.example.com:2222/agent":           {"ssh://git@git.example.com:2222/agent.git"},
		"github.com:443/acme/agent":            {"ssh://git@github.com:443/acme/agent"},
		"[::1]:3000/a":                         {"https://[::1]:3000/a"},
		"github.com/acme/agent.git":            {"https://github.com/acme/agent.git.git"},
		"git.example.com/日本":                   {"https://git.example.com/日本", "https://git.example.com/%E6%97%A5%E6%9C%AC.git"},
	} {
		for _, url := range urls {
			if got, ok := push.Repository(url); !ok || got != want {
				t.Errorf("%s: got %q (%v), want %q", url, got, ok, want)
			}
		}
	}
	for _, url := range []string{
		"", "agent", "/srv/agent.git", "file:///srv/agent.git", "ftp://github.com/acme/agent", "https://github.com", "https://github.com/", "https://github.com/.git",
		"https:///acme/agent", "https://%zz/acme", "https://github.com/a%23b", "https://github.com/a%00b", "https://github.com/a%20b", "https://github.com/a%FFb",
		"git@:acme", "git@github.com:", "ext::sh -c true", "--upload-pack=x", "https://github.com/..", "git@github.com:/",
	} {
		if got, ok := push.Repository(url); ok || got != "" {
			t.Errorf("%s: got %q, want none", url, got)
		}
	}
}

// FuzzRepository: the name of a name is the name itself, in lower case and without secrets.
func FuzzRepository(f *testing.F) {
	for _, seed := range []string{
		"https://github.com/acme/agent.git", "git@github.com:acme/agent", "ssh://git@h:22/~u/r.git/", "https://ada:hush@GIT.h:8443/A/B", "https://h/a/../../b",
		"https://h/%2e%2e/a", "h:22/a", "https://[::1]/a", "https://h:443:443/a", "https://İ/İ", "https://h/.git.git/.git", "file:///a", "\x00://",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		name, ok := push.Repository(url)
		if !ok {
			if name != "" {
				t.Errorf("%q: got %q with false", url, name)
			}
			return
		}
		if again, ok := push.Repository("git://" + name); !strings.HasSuffix(name, ".git") && !strings.Contains(name, ":9418/") && (!ok || again != name) {
			t.Errorf("%q has the name %q, which has the name %q (%v)", url, name, again, ok)
		}
		if host, path, _ := strings.Cut(name, "/"); name != strings.ToLower(name) || strings.Contains(host, "@") || path == "" || strings.Contains("/"+path+"/", "/../") {
			t.Errorf("%q has the name %q", url, name)
		}
	})
}
