package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/cmd/client"
)

// firstTries is how many requests are sent to a server that has never answered.
const firstTries = 3

// api is a server whose answers may be lost: a request that fails temporarily is repeated, and
// executed once.
type api struct {
	*client.Client
	contact
}

// contact is the time of a server's last answer.
type contact struct{ answered time.Time }

// do is Call with an idempotency key, with which the server executes a repeated request once.
func (a *api) do(ctx context.Context, method, address string, body, out any) error {
	key := rand.Text()
	for try := 1; ; try++ {
		err := a.Call(ctx, method, address, body, out, "Idempotency-Key", key)
		if err == nil {
			a.answered = time.Now()
			return nil
		}
		if ctx.Err() != nil || !isPassing(err) || !a.hopeful(err, try) || !clock.Sleep(ctx, reconnectPause) {
			return err
		}
	}
}

// hopeful reports whether a server that did not answer should be asked again.
func (c contact) hopeful(err error, tries int) bool {
	if c.answered.IsZero() {
		return tries < firstTries && !errors.Is(err, syscall.ECONNREFUSED)
	}
	return time.Since(c.answered) < reconnectLimit
}

// deployment and revision are the objects of the interface, as far as the commands use them.
type deployment struct {
	ID             string         `json:"id"`
	Name           string         `json:"name"`
	Source         string         `json:"source"`
	SourceConfig   sourceConfig   `json:"source_config"`
	RevisionConfig revisionConfig `json:"source_revision_config"`
	Secrets        []secret       `json:"secrets,omitempty"`
	Status         string         `json:"status"`
	Active         string         `json:"active_revision_id"`
	Latest         string         `json:"latest_revision_id"`
	Created        time.Time      `json:"created_at"`
	Updated        time.Time      `json:"updated_at"`
	// Purge is the time until which a deleted deployment can be restored.
	Purge *time.Time `json:"purge_at,omitempty"`
}

// page is a page of a list of the interface.
type page[T any] struct {
	Resources []T    `json:"resources"`
	Cursor    string `json:"cursor"`
}

type sourceConfig struct {
	URL         string `json:"custom_url"`
	RepoURL     string `json:"repo_url,omitempty"`
	BuildOnPush bool   `json:"build_on_push"`
}

type revisionConfig struct {
	Ref        string `json:"repo_ref,omitempty"`
	Commit     string `json:"repo_commit_sha,omitempty"`
	ConfigPath string `json:"framework_config_path,omitempty"`
	Image      string `json:"image_uri,omitempty"`
}

type secret struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type revision struct {
	ID      string               `json:"id"`
	Status  string               `json:"status"`
	Reason  string               `json:"status_reason"`
	Message string               `json:"status_message"`
	Config  revisionConfig       `json:"source_revision_config"`
	Phases  map[string]time.Time `json:"phase_timestamps"`
	Build   struct {
		SourceDigest string `json:"source_digest"`
	} `json:"build"`
	Created time.Time `json:"created_at"`
}

func (d deployment) path() string { return "/v2/deployments/" + d.ID }

func (d deployment) revision(revision string) string { return d.path() + "/revisions/" + revision }

// named finds a deployment by its name; ok reports whether there is such a deployment. A stack's
// list may be a moment behind, so the deployment is then read by its id.
func (a *api) named(ctx context.Context, name string) (named deployment, ok bool, err error) {
	var page page[deployment]
	if err := a.do(ctx, http.MethodGet, "/v2/deployments?"+url.Values{"name": {name}}.Encode(), nil, &page); err != nil {
		return named, false, err
	}
	at := slices.IndexFunc(page.Resources, func(d deployment) bool { return d.Name == name })
	if at < 0 {
		return named, false, nil
	}
	err = a.do(ctx, http.MethodGet, page.Resources[at].path(), nil, &named)
	if client.IsNotFound(err) {
		return deployment{}, false, nil // it was deleted
	}
	return named, true, err
}

// deployment finds a deployment by its id or its name.
func (a *api) deployment(ctx context.Context, idOrName string) (named deployment, err error) {
	if id.Valid(idOrName) {
		err = a.do(ctx, http.MethodGet, "/v2/deployments/"+idOrName, nil, &named)
		return named, err
	}
	named, ok, err := a.named(ctx, idOrName)
	if err == nil && !ok {
		err = fmt.Errorf("there is no deployment named %q", idOrName)
	}
	return named, err
}
