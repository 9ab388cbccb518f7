package push

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shortForm matches ssh's user@host:path.
var shortForm = regexp.MustCompile(`^(?:[^/:@]+@)?([A-Za-z0-9.-]+):([^:].*)$`)

// ports are the default ports, which a URL need not name.
var ports = map[string]string{"https": ":443", "http": ":80", "ssh": ":22", "git": ":9418"}

// Repository returns the name of a repository independent of the transport: host/path in lower
// case, without user, default port and .git. The URLs of a repository for https and for ssh
// have one name where both are served by one host and port. ok is false for a URL from which
// no host can push.
func Repository(repoURL string) (name string, ok bool) {
	host, folder, ok := split(repoURL)
	if !ok || !utf8.ValidString(host+folder) {
		return "", false
	}
	host = strings.ToLower(host)
	folder = strings.TrimSuffix(path.Clean("/"+strings.ToLower(folder)), ".git")
	name = host + folder
	strange := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`?#%\`, r) }
	if host == "" || strings.HasSuffix(folder, "/") || strings.ContainsFunc(name, strange) {
		return "", false
	}
	return name, true
}

func split(repoURL string) (host, folder string, ok bool) {
	if !strings.Contains(repoURL, "://") {
		parts := shortForm.FindStringSubmatch(repoURL)
		if parts == nil {
			return "", "", false
		}
		return parts[1], parts[2], true
	}
	u, err := url.Parse(repoURL)
	if err != nil {
		return "", "", false
	}
	port, ok := ports[u.Scheme]
	return strings.TrimSuffix(u.Host, port), u.Path, ok
}
