package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	api "github.com/google/go-github/v88/github"
	"golang.org/x/sync/singleflight"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/lru"
)

const (
	// tokenRest is the shortest time for which a token is still valid when it is handed out. A
	// clone takes its time, and a build may wait for its place until it is handed another
	// token.
	tokenRest = 20 * time.Minute
	// maxTokens bounds the number of tokens that are kept.
	maxTokens = 4096
)

// repository is a repository at GitHub, the zero value all repositories of an installation.
type repository struct{ owner, name string }

func (r repository) String() string { return r.owner + "/" + r.name }

// tokenKey identifies the purpose of a token. Names at GitHub are not case-sensitive.
type tokenKey struct {
	installation int64
	repository   string
}

// token is an access token of an installation.
type token struct {
	value   string
	expires time.Time
	// repository is GitHub's id of the one repository that the token reads, otherwise 0.
	repository int64
}

// tokenCache keeps access tokens, in memory only. All clones of a repository within 40 minutes then
// take one request to GitHub together, in place of one for each clone, or four after a rename. A
// token is used until tokenRest before its end. A change of an installation forgets its tokens, and
// GitHub refuses a token that has lost its access.
type tokenCache struct {
	flight singleflight.Group
	mu     sync.Mutex
	held   *lru.Cache[tokenKey, token]
	// generation counts the calls that forget tokens. The answer to a request from an earlier
	// generation is used once, and not kept.
	generation int
}

func newTokenCache() *tokenCache {
	return &tokenCache{held: lru.New[tokenKey, token](maxTokens)}
}

func (t *tokenCache) get(key tokenKey, now time.Time) (held token, generation int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if held, ok := t.held.Get(key); ok && now.Add(tokenRest).Before(held.expires) {
		return held, t.generation
	}
	return token{}, t.generation
}

func (t *tokenCache) put(key tokenKey, issued token, generation int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if generation == t.generation {
		t.held.Put(key, issued, 1)
	}
}

func (t *tokenCache) forget(installation int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation++
	t.held.DropIf(func(key tokenKey) bool { return key.installation == installation })
}

// token returns a token that reads the contents of a repository of the installation or, for
// the zero repository, the metadata of all repositories. Callers that need the same token at
// the same time share one request to GitHub, which continues when one of these callers goes
// away.
func (s *Service) token(ctx context.Context, i Installation, repo repository) (token, error) {
	app, err := s.app(ctx)
	if err != nil {
		return token{}, err
	}
	key := tokenKey{i.InstallationID, strings.ToLower(repo.String())}
	held, generation := s.tokens.get(key, s.now())
	if held.value != "" {
		return held, nil
	}
	name := fmt.Sprintf("%d %s %d", key.installation, key.repository, generation)
	answers := s.tokens.flight.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*callTimeout)
		defer cancel()
		if held, _ := s.tokens.get(key, s.now()); held.value != "" {
			return held, nil // an answer came between the lookup and the request
		}
		issued, err := app.ask(ctx, i, repo)
		if err != nil {
			return token{}, err
		}
		s.tokens.put(key, issued, generation)
		return issued, nil
	})
	select {
	case answer := <-answers:
		return answer.Val.(token), answer.Err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// ask asks GitHub for a token. The name of a repository means a repository of the
// installation's account, also if the URL names another owner. GitHub does not follow a rename
// here, so a repository that the name alone does not find is looked up.
func (g *github) ask(ctx context.Context, i Installation, repo repository) (token, error) {
	read := new("read")
	if repo == (repository{}) {
		issued, err := g.create(ctx, i, api.InstallationTokenOptions{Permissions: &api.InstallationPermissions{Metadata: read}})
		return tokenOf(issued), g.trouble(err, i.Name)
	}
	options := api.InstallationTokenOptions{Repositories: []string{repo.name}, Permissions: &api.InstallationPermissions{Contents: read, Metadata: read}}
	issued, err := g.create(ctx, i, options)
	if err == nil && len(issued.Repositories) == 1 && strings.EqualFold(issued.Repositories[0].GetFullName(), repo.String()) {
		return tokenOf(issued), nil
	}
	if err != nil && !unprocessable(err) {
		return token{}, g.trouble(err, i.Name)
	}
	repositoryID, err := g.lookUp(ctx, i, repo)
	if err != nil {
		return token{}, err
	}
	options.Repositories, options.RepositoryIDs = nil, []int64{repositoryID}
	issued, err = g.create(ctx, i, options)
	if unprocessable(err) {
		return token{}, outOfReach(i, repo)
	}
	return tokenOf(issued), g.trouble(err, i.Name)
}

// lookUp returns the id of a repository that may have been renamed.
func (g *github) lookUp(ctx context.Context, i Installation, repo repository) (int64, error) {
	all, err := g.ask(ctx, i, repository{})
	if err != nil {
		return 0, err
	}
	client, err := g.as(all.value)
	if err != nil {
		return 0, err
	}
	r, _, err := client.Repositories.Get(ctx, repo.owner, repo.name)
	if refused(err).code == http.StatusNotFound {
		return 0, outOfReach(i, repo)
	}
	return r.GetID(), g.trouble(err, i.Name)
}

func (g *github) create(ctx context.Context, i Installation, options api.InstallationTokenOptions) (*api.InstallationToken, error) {
	client, err := g.asApp()
	if err != nil {
		return nil, err
	}
	issued, _, err := client.Apps.CreateInstallationToken(ctx, i.InstallationID, &options)
	if err == nil && (issued.GetToken() == "" || issued.GetExpiresAt().IsZero()) {
		err = errors.New("GitHub answered without a token")
	}
	return issued, err
}

// tokenOf returns the zero token for nil.
func tokenOf(issued *api.InstallationToken) token {
	t := token{value: issued.GetToken(), expires: issued.GetExpiresAt().Time}
	if issued != nil && len(issued.Repositories) == 1 {
		t.repository = issued.Repositories[0].GetID()
	}
	return t
}

func unprocessable(err error) bool {
	return refused(err).code == http.StatusUnprocessableEntity
}

func outOfReach(i Installation, repo repository) error {
	return fault.New(fault.Conflict, "The GitHub App's installation of %s has no access to the repository %s, or the repository does not exist. Select it in the settings of the installation at GitHub.",
		i.Name, repo)
}
