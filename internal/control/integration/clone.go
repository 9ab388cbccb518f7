package integration

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Check reports whether a repository may be cloned with an integration, as far as this is
// known without a request to a git host: a deployment can be created while GitHub is
// unavailable. Every broken rule is a fault.Invalid. use returns the writes that note a
// deployment with the integration, so that the integration cannot be deleted. The writes
// belong into the transaction that creates the deployment. Their conditions fail when the
// integration was changed since Check; the caller must then call Check again.
func (s *Service) Check(ctx context.Context, workspace, integrationID, repoURL string) (use func(deployment string, now time.Time) []table.Write, err error) {
	ref := Ref{workspace, integrationID}
	source, err := s.find(ctx, ref, repoURL)
	if err != nil {
		return nil, err
	}
	return func(deployment string, now time.Time) []table.Write { return source.use(ref, deployment, now) }, nil
}

// CloneCredentials returns "user:password" for a clone of the repository with the integration:
// build.Spec.Credentials. A fault.Unavailable may go away by itself. Any other fault does not,
// and its message tells people what to do.
func (s *Service) CloneCredentials(ctx context.Context, workspace, integrationID, repoURL string) (string, error) {
	source, err := s.find(ctx, Ref{workspace, integrationID}, repoURL)
	if err != nil {
		return "", err
	}
	if source.sealed != nil {
		token, err := s.sealer.Open(ctx, source.credential.bound(), source.sealed)
		if err != nil {
			return "", fmt.Errorf("open credential %s: %w", integrationID, err)
		}
		return source.credential.User + ":" + string(token), nil
	}
	issued, err := s.token(ctx, source.installation, source.repo)
	if err != nil {
		return "", err
	}
	// The repository may be renamed before its first push. The clone does without this note.
	if err := push.NewNames(s.table, s.now).Cloned(ctx, workspace, issued.repository, repoURL); err != nil {
		s.log.ErrorContext(ctx, "note the name of a repository", "workspace", workspace, "integration", integrationID, "error", err)
	}
	return "x-access-token:" + issued.value, nil
}

// CloneRefused requests new credentials for a clone whose credentials were refused, and
// returns the fault that says why: another process may have heard that the installation
// changed while this process still held a token.
func (s *Service) CloneRefused(ctx context.Context, workspace, integrationID, repoURL string) error {
	source, err := s.find(ctx, Ref{workspace, integrationID}, repoURL)
	if err != nil || source.sealed != nil {
		return err
	}
	s.Changed(source.installation.InstallationID)
	_, err = s.token(ctx, source.installation, source.repo)
	return err
}

// means is the way to clone a repository: an installation, or credentials.
type means struct {
	// item is the stored item of the installation or of the credentials.
	item         *table.Item
	installation Installation
	repo         repository
	credential   Credential
	sealed       []byte
}

// find reads an integration and checks it against the repository's URL. No fault repeats the
// URL, because the URL may contain a password.
func (s *Service) find(ctx context.Context, ref Ref, repoURL string) (means, error) {
	items, err := s.table.GetBatch(ctx, keys.GitHubIntegration(ref.Workspace, ref.Integration), ref.credentialKey())
	if err != nil {
		return means{}, fmt.Errorf("get integration: %w", err)
	}
	u, parseErr := url.Parse(repoURL)
	if (items[0] != nil || items[1] != nil) && (parseErr != nil || u.Scheme != "https" || u.Host == "") {
		return means{}, fault.New(fault.Invalid, "source_config.repo_url must be an https URL when there is a source_config.integration_id.")
	}
	switch {
	case items[0] != nil:
		return s.withInstallation(ctx, ref, items[0], u)
	case items[1] != nil:
		c, err := decodeCredential(ref.Workspace, items[1])
		if err == nil && c.Host != plainHost(u) {
			err = fault.New(fault.Invalid, "source_config.repo_url is at %s; the credentials of integration ID %s are for %s.", plainHost(u), ref.Integration, c.Host)
		}
		return means{item: items[1], credential: c, sealed: items[1].Body}, err
	default:
		return means{}, fault.New(fault.Invalid, "source_config.integration_id: integration ID %s not found.", ref.Integration)
	}
}

// repositoryPath matches owner/name as GitHub accepts them.
var repositoryPath = regexp.MustCompile(`^/([A-Za-z0-9_-][A-Za-z0-9_.-]*)/([A-Za-z0-9_.-]+?)(?:\.git)?/?$`)

func (s *Service) withInstallation(ctx context.Context, ref Ref, item *table.Item, u *url.URL) (means, error) {
	host, err := s.gitHubHost(ctx)
	if err != nil {
		return means{}, err
	}
	i, err := decodeInstallation(ref.Workspace, item)
	if err != nil {
		return means{}, err
	}
	if i.leaving {
		return means{}, fault.New(fault.Invalid, "source_config.integration_id: integration ID %s is being deleted.", ref.Integration)
	}
	if plainHost(u) != host {
		return means{}, fault.New(fault.Invalid, "source_config.repo_url is at %s; integration ID %s is for %s.", plainHost(u), ref.Integration, host)
	}
	parts := repositoryPath.FindStringSubmatch(u.Path)
	if parts == nil || strings.Trim(parts[2], ".") == "" || parts[2] == ".git" {
		return means{}, fault.New(fault.Invalid, "source_config.repo_url must name a repository at %s, as https://%s/owner/name.", host, host)
	}
	return means{item: item, installation: i, repo: repository{parts[1], parts[2]}}, nil
}

// use returns the writes that note a deployment with the integration.
func (m means) use(ref Ref, deployment string, now time.Time) []table.Write {
	return []table.Write{
		// The write increases the version, so that a deletion which looked for uses before
		// this write looks again. It is no change for users.
		table.Update{Key: m.item.Key, Add: map[string]int64{record.Version: 1}, If: unchanged(m.item.Int(record.Version))},
		record.New(keys.IntegrationUse(ref.Workspace, ref.Integration, deployment), "integration_use", now, nil, nil),
	}
}

// unchanged is the condition that nobody changed an item since it was read with a version.
func unchanged(version int64) table.Cond { return table.Equals(record.Version, version) }

// mustBeUnused refuses to remove an integration with which a deployment is cloned.
func (s *Service) mustBeUnused(ctx context.Context, ref Ref) error {
	use, err := record.First(ctx, s.table, "uses of integration", keys.IntegrationUses(ref.Workspace, ref.Integration))
	if err != nil || use == nil {
		return err
	}
	return fault.New(fault.Conflict, "Integration ID %s is in use: deployment ID %s is built with it. Delete the deployment first.",
		ref.Integration, keys.IntegrationUseDeployment(use.Key))
}
