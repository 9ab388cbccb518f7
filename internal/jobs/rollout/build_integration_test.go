package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// integrations answers for every integration with which a repository is cloned.
type integrations func(workspace, integration, repoURL string) (string, error)

func (i integrations) Check(context.Context, string, string, string) (func(string, time.Time) []table.Write, error) {
	return func(string, time.Time) []table.Write { return nil }, nil
}

func (i integrations) CloneCredentials(_ context.Context, workspace, integration, repoURL string) (string, error) {
	return i(workspace, integration, repoURL)
}

// CloneRefused asks again, like a service that forgets its tokens.
func (i integrations) CloneRefused(_ context.Context, workspace, integration, repoURL string) error {
	_, err := i(workspace, integration, repoURL)
	return err
}

const integrationID = "0197a000-0000-7000-8000-0000000000c1"

// TestARepositoryIsClonedWithItsIntegration: GitHub is unavailable at first.
func TestARepositoryIsClonedWithItsIntegration(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var asked atomic.Int64
	m.credentials = func(of, integration, repoURL string) (string, error) {
		if of != workspace || integration != integrationID || repoURL != "https://git.test/team/agent" {
			t.Errorf("asked for %s, %s, %s", of, integration, repoURL)
		}
		switch asked.Add(1) {
		case 1:
			return "", fault.New(fault.Unavailable, "GitHub takes no more requests at present.")
		case 2:
			return "", errors.New("a key that GitHub does not accept")
		default:
			return "x-access-token:ghs_1", nil
		}
	}
	s := m.start(t, m.table)
	request := fromGit("weather")
	request.SourceConfig.IntegrationID = new(integrationID)
	d := s.settle(t, s.create(t, request).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if spec := m.builder.specs[d.Latest]; spec.Credentials != "x-access-token:ghs_1" || asked.Load() != 3 {
		t.Errorf("asked %d times, the builder got %q", asked.Load(), spec.Credentials)
	}
	named := fromGit("named") // git hosts show clone URLs with the name of a user
	named.SourceConfig.IntegrationID, named.SourceConfig.RepoURL = new(integrationID), new("https://alice@git.test/team/agent")
	d = s.settle(t, s.create(t, named).Ref)
	if spec := m.builder.specs[d.Latest]; spec.Credentials != "x-access-token:ghs_1" || *d.SourceConfig.RepoURL != "https://git.test/team/agent" || d.Credentials != nil {
		t.Errorf("with the name of a user: the builder got %q for %s", spec.Credentials, *d.SourceConfig.RepoURL)
	}
}

// TestABuildThatWaitsIsGivenCredentialsAnew has a clock that goes on by a minute each time it
// is read, so that the credentials with which the build was started would expire.
func TestABuildThatWaitsIsGivenCredentialsAnew(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var asked atomic.Int64
	begin := clock.System()
	m.now = fixtures.NewClockAt(begin, time.Minute).Now
	m.patience = time.Millisecond
	m.credentials = func(string, string, string) (string, error) {
		return fmt.Sprintf("x-access-token:ghs_%d", asked.Add(1)), nil
	}
	m.builder.hold(true)
	s := m.start(t, m.table)
	request := fromGit("weather")
	request.SourceConfig.IntegrationID = new(integrationID)
	d := s.create(t, request)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	m.builder.mu.Lock()
	renewed := func() bool {
		given := m.builder.specs[d.Latest].Credentials
		return given != "" && given != "x-access-token:ghs_1"
	}
	m.builder.await(ctx, renewed)
	if !renewed() {
		t.Error("the build that waits has what it was started with")
	}
	m.builder.mu.Unlock()
	passed := m.now().Sub(begin) - time.Minute // without this reading
	if times := asked.Load(); passed < time.Duration(times-1)*5*time.Minute {
		t.Errorf("asked %d times within %s", times, passed)
	}
	m.builder.finish()
	d = s.settle(t, d.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

// TestAnIntegrationThatDoesNotReachEndsInWords checks the first revision, and a revision after
// a revision that serves.
func TestAnIntegrationThatDoesNotReachEndsInWords(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Invalid, fault.Conflict, fault.NotFound} {
		m := newMachine(t)
		var gone atomic.Bool
		m.credentials = func(string, string, string) (string, error) {
			if gone.Load() {
				return "", fault.New(kind, "The GitHub App is not installed at acme any more.")
			}
			return "u:p", nil
		}
		s := m.start(t, m.table)
		request := fromGit("weather")
		request.SourceConfig.IntegrationID = new(integrationID)
		d := s.settle(t, s.create(t, request).Ref)
		active := d.Active
		gone.Store(true)
		s.patch(t, d.Ref, again("dev"))
		d = s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.BuildFailed)
		r := s.revision(t, d.Ref, d.Latest)
		if r.Reason != build.ReasonRepoUnreachable || r.Message != "The GitHub App is not installed at acme any more." || d.Active != active || active == "" {
			t.Errorf("%s: got %s: %q, active %q", kind, r.Reason, r.Message, d.Active)
		}
	}
}

// TestACloneThatWasRefusedEndsInTheWordsOfItsIntegration has credentials that are revoked
// between their creation and the clone.
func TestACloneThatWasRefusedEndsInTheWordsOfItsIntegration(t *testing.T) {
	t.Parallel()
	const git, gitHub = "Authentication failed", "The installation of acme is suspended."
	for name, c := range map[string]struct {
		reason string
		answer error
		want   string
	}{
		"suspended":         {build.ReasonRepoUnreachable, fault.New(fault.Conflict, gitHub), gitHub},
		"GitHub is away":    {build.ReasonRepoUnreachable, fault.New(fault.Unavailable, "Try again later."), git},
		"nothing is wrong":  {build.ReasonRepoUnreachable, nil, git},
		"it was not cloned": {build.ReasonRefNotFound, fault.New(fault.Conflict, gitHub), git},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			var cloned atomic.Bool
			m.credentials = func(string, string, string) (string, error) {
				if cloned.Load() {
					return "", c.answer
				}
				return "u:p", nil
			}
			m.builder.outcome = func(build.Spec) build.Result {
				cloned.Store(true)
				return build.Result{State: build.Failed, Reason: c.reason, Message: git}
			}
			s := m.start(t, m.table)
			request := fromGit("weather")
			request.SourceConfig.IntegrationID = new(integrationID)
			d := s.settle(t, s.create(t, request).Ref)
			s.wantAtRest(t, d.Ref, revision.BuildFailed)
			if r := s.revision(t, d.Ref, d.Latest); r.Reason != c.reason || r.Message != c.want {
				t.Errorf("got %s: %q, want %q", r.Reason, r.Message, c.want)
			}
		})
	}
}
