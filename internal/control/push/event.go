package push

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Names of events in X-GitHub-Event and X-Gitlab-Event. All others are accepted and do nothing.
const (
	eventPush         = "push"
	eventInstallation = "installation"
	eventRepositories = "installation_repositories"
	eventGitLab       = "Push Hook"
)

// payload is the part of an event's body that is read.
type payload struct {
	Action     string `json:"action"`
	Ref        string `json:"ref"`
	After      string `json:"after"`
	Deleted    bool   `json:"deleted"`
	Repository struct {
		ID       int64  `json:"id"`
		CloneURL string `json:"clone_url"`
		SSHURL   string `json:"ssh_url"`
		HTMLURL  string `json:"html_url"`
	} `json:"repository"`
	// Project is the repository at GitLab, where only the commit shows that a branch was deleted.
	Project struct {
		HTTPURL string `json:"git_http_url"`
		SSHURL  string `json:"git_ssh_url"`
		WebURL  string `json:"web_url"`
	} `json:"project"`
	Installation struct {
		ID int64 `json:"id"`
	} `json:"installation"`
}

func parse(body []byte) (p payload, err error) {
	if json.Unmarshal(body, &p) != nil {
		err = fault.New(fault.Invalid, "The payload is not the JSON of an event; choose application/json as the webhook's content type, and no template of its own.")
	}
	return p, err
}

// commitID matches the id of a commit, for both hashes that git supports.
var commitID = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// change is a push that created a branch or moved it on.
type change struct {
	// repository is GitHub's id, 0 at other hosts; names are all names of the repository.
	repository     int64
	names          []string
	branch, commit string
	// own is set for a push that the webhook of one deployment reports. Its repository counts as
	// the deployment's also if the host tells another name of itself than the deployment has.
	own bool
}

// change returns the change that a push made; ok is false for tags, for branches that are deleted,
// and for a payload that names no commit. The push that creates a branch is a change like others.
func (p payload) change() (c change, ok bool) {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	if !isBranch || branch == "" || p.Deleted || strings.Trim(p.After, "0") == "" || !commitID.MatchString(p.After) {
		return change{}, false
	}
	c = change{repository: p.Repository.ID, branch: branch, commit: p.After}
	for _, url := range []string{p.Repository.CloneURL, p.Repository.SSHURL, p.Repository.HTMLURL, p.Project.HTTPURL, p.Project.SSHURL, p.Project.WebURL} {
		if name, ok := Repository(url); ok && !slices.Contains(c.names, name) {
			c.names = append(c.names, name)
		}
	}
	return c, len(c.names) > 0
}

// stated refuses a delivery to a deployment whose headers cannot be valid with any body.
// The header with a token is sufficient to decide.
func (r *Receiver) stated(ctx context.Context, workspace, deployment string, d Delivery) error {
	if d.Token == "" {
		return d.stated()
	}
	secret, err := r.HookSecret(ctx, workspace, deployment)
	if err == nil && !d.bears(secret) {
		err = unauthorized()
	}
	return err
}

// bears reports whether a delivery's token is the secret.
func (d Delivery) bears(secret string) bool { return hmac.Equal([]byte(d.Token), []byte(secret)) }
