package authservice_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

func TestADeniedConsentIsToldToWhoWaits(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	f.oauth.set(func() { f.oauth.deny = true })
	pending := f.ask(t, asking("read"), authservice.Pending)
	answers := make(chan authservice.Answer, 1)
	go func() {
		answer, err := f.Wait(context.WithoutCancel(t.Context()), workspace, pending.AuthID, time.Minute)
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	outcome, err := f.Complete(t.Context(), back(f.oauth.visit(t, pending.URL)))
	if err != nil || outcome.Error != "access_denied" || outcome.ErrorDescription == "" {
		t.Errorf("got %+v (%v)", outcome, err)
	}
	if answer := <-answers; answer.Status != authservice.NotFound || answer.Error != "access_denied" || answer.ErrorDescription != outcome.ErrorDescription {
		t.Errorf("got %+v", answer)
	}
}

func TestWhoWaitsIsWoken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	answers := make(chan authservice.Answer, 3)
	for range cap(answers) {
		go func() {
			answer, err := authservice.New(f.config).Wait(context.WithoutCancel(t.Context()), workspace, pending.AuthID, time.Minute)
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	f.consent(t, pending)
	for range cap(answers) {
		if answer := <-answers; answer.Status != authservice.Completed || !f.oauth.accepts(answer.Token) || answer.User != user {
			t.Errorf("got %s", answer.Status)
		}
	}
}

func TestWaitHasAnAnswerForEveryID(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.createProvider(t)
	pending := f.ask(t, asking("read"), authservice.Pending)
	for name, c := range map[string]struct {
		workspace, id string
		timeout       time.Duration
		want          authservice.Status
	}{
		"at once":           {workspace, pending.AuthID, 0, authservice.Pending},
		"a while":           {workspace, pending.AuthID, time.Millisecond, authservice.Timeout},
		"unknown":           {workspace, unknown, time.Minute, authservice.NotFound},
		"no id":             {workspace, "../" + pending.AuthID, time.Minute, authservice.NotFound},
		"another workspace": {other, pending.AuthID, time.Minute, authservice.NotFound},
	} {
		if answer, err := f.Wait(t.Context(), c.workspace, c.id, c.timeout); err != nil || answer.Status != c.want {
			t.Errorf("%s: got %+v (%v), want %s", name, answer, err, c.want)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Wait(gone, workspace, pending.AuthID, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: got %v", err)
	}
}
