// Package repository has the rules about where builders clone from: which addresses they
// accept, which protocols git may use for an address, and which host its credentials are for.
package repository

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// Repository is the place that a builder clones from.
type Repository struct {
	// URL contains no password. It contains no user name either if git gets the user name from
	// the credentials.
	URL string
	// Path is the directory of this machine in which git will look for the repository, "" for
	// a repository on the network.
	Path string
	// Protocols are the protocols that git may use, for submodules too. A repository on the
	// network must not name files of this machine.
	Protocols string
	Credentials
}

// Credentials are for the host of one repository. They are empty if the repository has no
// credentials, or if git cannot be given them.
type Credentials struct {
	// Scope is the scheme and host that the credentials are for.
	Scope, Username, Password string
}

// Given reports whether there are credentials.
func (c Credentials) Given() bool { return c.Username != "" || c.Password != "" }

// Pair returns "user:password" of credentials that are Given.
func (c Credentials) Pair() string { return c.Username + ":" + c.Password }

// Network are the protocols of repositories that are not on this machine. git's own protocol
// is not among them: it has neither encryption nor credentials, and it uses no proxy that
// could check which address it connects to.
const Network = "https:http:ssh"

// shortForm matches the form user@host:path, which git takes as an ssh address.
var shortForm = regexp.MustCompile(`^[A-Za-z0-9_][^/:]*:[^:]`)

var (
	refusedHere    = build.Fail(build.ReasonRepoUnreachable, "the repository's address is none that git can clone from: use https://, ssh:// or file://.")
	refusedLocal   = build.Fail(build.ReasonRepoUnreachable, "the repository is a directory of the server's machine, and this server clones none of these unless it was started with --local-repositories. Use https:// or ssh://.")
	refusedNetwork = build.Fail(build.ReasonRepoUnreachable, "the repository's address is none that git can clone from here: use https:// or ssh://.")
)

// Parse checks the address of a repository and takes the credentials out of it. If the address
// is wrong, the error is a build.Failure that does not repeat the address, because it may
// contain a password.
func Parse(spec build.Spec) (Repository, error) {
	if r, ok := parse(spec); ok && r.Path == "" {
		return r, nil
	}
	return Repository{}, refusedNetwork
}

// ParseHere is Parse for a builder on one machine, which clones from the machine's own
// directories if local is true.
func ParseHere(spec build.Spec, local bool) (Repository, error) {
	r, ok := parse(spec)
	switch {
	case !ok && local:
		return Repository{}, refusedHere
	case !ok:
		return Repository{}, refusedNetwork
	case r.Path != "" && !local:
		return Repository{}, refusedLocal
	default:
		return r, nil
	}
}

func parse(spec build.Spec) (Repository, bool) {
	if filepath.IsAbs(spec.RepoURL) {
		return Repository{URL: spec.RepoURL, Path: spec.RepoURL, Protocols: Network + ":file"}, true
	}
	if !strings.Contains(spec.RepoURL, "://") {
		return Repository{URL: spec.RepoURL, Protocols: Network}, shortForm.MatchString(spec.RepoURL)
	}
	u, err := url.Parse(spec.RepoURL)
	if err != nil {
		return Repository{}, false
	}
	r := Repository{Protocols: Network}
	username, password := CredentialsOf(spec)
	switch u.Scheme {
	case "file":
		if !isPath(u) {
			return Repository{}, false
		}
		r.Path, r.Protocols = u.Path, Network+":file"
	case "ssh":
		u.User = nil
		if username != "" {
			u.User = url.User(username)
		}
	case "https", "http":
		r.Credentials = Credentials{u.Scheme + "://" + u.Host, username, password}
		u.User = nil
	default:
		return Repository{}, false
	}
	r.URL = u.String()
	return r, true
}

// isPath reports whether a file URL is nothing but a path. git takes everything that follows
// the slashes as the path. So if the URL had other parts, git would look in another place than
// the path without these parts.
func isPath(u *url.URL) bool {
	return filepath.IsAbs(u.Path) && *u == url.URL{Scheme: u.Scheme, Path: u.Path, RawPath: u.RawPath}
}

// CredentialsOf returns the credentials of the spec, or else the credentials that are still in
// its address.
func CredentialsOf(spec build.Spec) (username, password string) {
	if spec.Credentials != "" {
		username, password, _ = strings.Cut(spec.Credentials, ":")
		return username, password
	}
	if u, err := url.Parse(spec.RepoURL); err == nil && u.User != nil {
		password, _ = u.User.Password()
		return u.User.Username(), password
	}
	return "", ""
}

// FullRef completes a branch's bare name.
func FullRef(ref string) string {
	if strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}
