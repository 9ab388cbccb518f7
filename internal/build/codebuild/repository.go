package codebuild

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/slipway-run/slipway/internal/build"
)

// repository is where to clone from.
type repository struct {
	// url has no password in it, and no user name either where git gets that from the credentials.
	url string
	// scope is the scheme and host that the credentials are for.
	scope string
	// credentials are "user:password", or "" when there are none.
	credentials string
}

// protocols are those that git may use, for submodules too.
const protocols = "https:http:ssh:git"

// shortForm matches the form user@host:path that git takes for ssh.
var shortForm = regexp.MustCompile(`^[A-Za-z0-9_][^/:]*:[^:]`)

const refusedAddress = "the repository's address is none that git can clone from here: use https:// or ssh://."

// parseRepository checks the address of a repository and takes its credentials out. The second result is what is wrong with it.
func parseRepository(spec build.Spec) (repo repository, failure string) {
	if !strings.Contains(spec.RepoURL, "://") {
		if !shortForm.MatchString(spec.RepoURL) {
			return repository{}, refusedAddress
		}
		return repository{url: spec.RepoURL}, ""
	}
	u, err := url.Parse(spec.RepoURL)
	if err != nil {
		return repository{}, refusedAddress // the parser's error would show the password
	}
	switch u.Scheme {
	case "ssh":
		if user, _, _ := strings.Cut(spec.Credentials, ":"); user != "" {
			u.User = url.User(user)
		} else if u.User != nil {
			u.User = url.User(u.User.Username())
		}
	case "https", "http":
		repo.scope = u.Scheme + "://" + u.Host
		repo.credentials = credentialsOf(spec, u)
		u.User = nil
	case "git":
		u.User = nil
	default:
		return repository{}, refusedAddress
	}
	repo.url = u.String()
	return repo, ""
}

// credentialsOf are the credentials of the spec, or else those that its address still has in it, always with a colon.
func credentialsOf(spec build.Spec, u *url.URL) string {
	if spec.Credentials != "" {
		user, password, _ := strings.Cut(spec.Credentials, ":")
		return user + ":" + password
	}
	if u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return u.User.Username() + ":" + password
}
