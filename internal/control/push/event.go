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

// Names of events, as X-GitHub-Event has them. All other events are accepted and do nothing.
const (
	eventPush         = "push"
	eventInstallation = "installation"
	eventRepositories = "installation_repositories"
)

// payload is the part of an event's body that is read.
type payload struct {
	Action       string `json:"action"`
	Ref          string `json:"ref"`
	After        string `json:"after"`
	Deleted      bool   `json:"deleted"`
	Repository   repo   `json:"repository"`
	Installation struct {
		ID int64 `json:"id"`
	} `json:"installation"`
}

type repo struct {
	ID       int64  `json:"id"`
	CloneURL string `json:"clone_url"`
	SSHURL   string `json:"ssh_url"`
	HTMLURL  string `json:"html_url"`
}

func parse(body []byte) (payload, error) {
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return payload{}, fault.New(fault.Invalid, "The payload is not the JSON of a GitHub event; choose application/json as the webhook's content type.")
	}
	return p, nil
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
	if !isBranch || branch == "" || p.Deleted || none(p.After) || !commitID.MatchString(p.After) {
		return change{}, false
	}
	c = change{repository: p.Repository.ID, branch: branch, commit: p.After}
	for _, url := range []string{p.Repository.CloneURL, p.Repository.SSHURL, p.Repository.HTMLURL} {
		if name, ok := Repository(url); ok && !slices.Contains(c.names, name) {
			c.names = append(c.names, name)
		}
	}
	return c, len(c.names) > 0
}

// none reports whether an id is not the id of a commit: all zeros.
func none(commit string) bool { return strings.Trim(commit, "0") == "" }

// eventGitLab is GitLab's name of a push, in X-Gitlab-Event. Its other events are accepted and do
// nothing.
const eventGitLab = "Push Hook"

// gitlabPush is the part of the body of a push at GitLab that is read. Only the commit shows that a
// branch was deleted.
type gitlabPush struct {
	Ref     string `json:"ref"`
	After   string `json:"after"`
	Project struct {
		HTTPURL string `json:"git_http_url"`
		SSHURL  string `json:"git_ssh_url"`
		WebURL  string `json:"web_url"`
	} `json:"project"`
}

// parseGitLab reads a push at GitLab as if GitHub had sent it, but without an id of the repository.
func parseGitLab(body []byte) (payload, error) {
	var p gitlabPush
	if err := json.Unmarshal(body, &p); err != nil {
		return payload{}, fault.New(fault.Invalid, "The payload is not the JSON of GitLab's push event; leave the webhook without a template of its own.")
	}
	return payload{
		Ref: p.Ref, After: p.After, Repository: repo{CloneURL: p.Project.HTTPURL, SSHURL: p.Project.SSHURL, HTMLURL: p.Project.WebURL},
	}, nil
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
