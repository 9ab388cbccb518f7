package integration

import (
	"context"
	"encoding/base64"
	"fmt"

	api "github.com/google/go-github/v88/github"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Repository is a repository that an installation may reach: the interface's GithubRepository.
type Repository struct {
	// Integration is the integration through which the repository was found:
	// host_integration_id.
	Integration string
	// ID is GitHub's id.
	ID            int64
	Name, Owner   string
	URL           string
	DefaultBranch string
}

const (
	// MaxRepositories is the largest number of repositories that Repositories returns.
	MaxRepositories = 2000
	// maxPage is the largest number of repositories that GitHub returns at once.
	maxPage = 100
)

// Repositories returns the repositories that an installation may reach, MaxRepositories at
// most. RepositoryPage has no such limit.
func (s *Service) Repositories(ctx context.Context, ref Ref) ([]Repository, error) {
	all, page := []Repository{}, 1
	for page != 0 && len(all) < MaxRepositories {
		repositories, next, err := s.repositories(ctx, ref, api.ListOptions{Page: page, PerPage: maxPage})
		if err != nil {
			return nil, err
		}
		all, page = append(all, repositories...), next
	}
	return all, nil
}

// RepositoryPage returns up to size (100 at most) of the repositories, in GitHub's order, and
// the cursor of the next page, "" after the last page.
func (s *Service) RepositoryPage(ctx context.Context, ref Ref, size int, cursor string) ([]Repository, string, error) {
	page := 1
	if cursor != "" {
		// The number of a page counts pages of this size.
		var of int
		text, err := base64.RawURLEncoding.DecodeString(cursor)
		if _, scanErr := fmt.Sscanf(string(text), "%d of %d", &page, &of); err != nil || scanErr != nil || page < 2 || of != size {
			return nil, "", fault.Cursor()
		}
	}
	repositories, next, err := s.repositories(ctx, ref, api.ListOptions{Page: page, PerPage: size})
	if err != nil || next == 0 {
		return repositories, "", err
	}
	return repositories, base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d of %d", next, size)), nil
}

// repositories returns a page of GitHub's list, and the number of the next page or 0.
func (s *Service) repositories(ctx context.Context, ref Ref, options api.ListOptions) ([]Repository, int, error) {
	i, err := s.GetInstallation(ctx, ref)
	if err != nil {
		return nil, 0, err
	}
	app, err := s.app(ctx)
	if err != nil {
		return nil, 0, err
	}
	issued, err := s.token(ctx, i, repository{})
	if err != nil {
		return nil, 0, err
	}
	client, err := app.as(issued.value)
	if err != nil {
		return nil, 0, err
	}
	page, answer, err := client.Apps.ListRepos(ctx, &options)
	if err != nil {
		s.Changed(i.InstallationID) // the token may have been revoked
		return nil, 0, app.trouble(err, i.Name)
	}
	repositories := make([]Repository, 0, len(page.Repositories))
	for _, r := range page.Repositories {
		repositories = append(repositories, Repository{
			Integration: i.Integration, ID: r.GetID(), Name: r.GetName(), Owner: r.GetOwner().GetLogin(), URL: r.GetHTMLURL(), DefaultBranch: r.GetDefaultBranch(),
		})
	}
	return repositories, answer.NextPage, nil
}
