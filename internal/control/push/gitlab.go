package push

import (
	"context"
	"crypto/hmac"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/base/fault"
)

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
