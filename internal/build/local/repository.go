package local

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/build"
)

// repository is where to clone from.
type repository struct {
	// url has no password in it, and no user name either where git gets that from the credentials.
	url string
	// protocols are those that git may use, for submodules too. A repository on the network must not name files of this machine.
	protocols string
	credentials
}

// credentials are for the host of one repository. They are empty when there are none.
type credentials struct {
	// scope is the scheme and host that they are for.
	scope, username, password string
}

const networkProtocols = "https:http:ssh:git"

// shortForm matches the form user@host:path that git takes for ssh.
var shortForm = regexp.MustCompile(`^[A-Za-z0-9_][^/:]*:[^:]`)

// parseRepository checks the address of a repository and takes its credentials out.
func parseRepository(spec build.Spec) (repository, error) {
	refused := build.Fail(build.ReasonRepoUnreachable, "the repository's address is none that git can clone from: use https://, ssh:// or file://.")
	if filepath.IsAbs(spec.RepoURL) {
		return repository{url: spec.RepoURL, protocols: networkProtocols + ":file"}, nil
	}
	if !strings.Contains(spec.RepoURL, "://") {
		if !shortForm.MatchString(spec.RepoURL) {
			return repository{}, refused
		}
		return repository{url: spec.RepoURL, protocols: networkProtocols}, nil
	}
	u, err := url.Parse(spec.RepoURL)
	if err != nil {
		return repository{}, refused // the parser's error would show the password
	}
	repo := repository{protocols: networkProtocols, credentials: credentialsOf(spec)}
	switch u.Scheme {
	case "file":
		repo.protocols += ":file"
		repo.credentials = credentials{}
	case "ssh":
		if user := repo.username; user != "" {
			u.User = url.User(user)
		}
		repo.credentials = credentials{}
	case "https", "http":
		u.User = nil
		repo.scope = u.Scheme + "://" + u.Host
	case "git":
	default:
		return repository{}, refused
	}
	repo.url = u.String()
	return repo, nil
}

// credentialsOf are the credentials of the spec, or else those that its address still has in it.
func credentialsOf(spec build.Spec) credentials {
	var found credentials
	if spec.Credentials != "" {
		found.username, found.password, _ = strings.Cut(spec.Credentials, ":")
		return found
	}
	if u, err := url.Parse(spec.RepoURL); err == nil && u.User != nil {
		found.username = u.User.Username()
		found.password, _ = u.User.Password()
	}
	return found
}
