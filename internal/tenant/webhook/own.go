package webhook

import (
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// Own are the settings that a deployment's repository gives to the messages about its runs.
type Own struct {
	// Rules are the rules for addresses, nil for no rules.
	Rules *build.Webhooks
	// Header are the headers by name. Their values may be secrets: nothing stores or logs them.
	Header map[string]string
}

// Refusal is why a message is not sent. It holds no address and no secret.
type Refusal struct{ Why string }

func (e *Refusal) Error() string { return e.Why }

// sendOwn makes an attempt to send a Message by the present rules of its deployment, which may have
// changed since the address was checked.
func (s *Store) sendOwn(ctx context.Context, d Delivery) (outcome, error) {
	message := delivered{Sent: d.Message, client: s.client}
	if s.Own == nil || d.Message.Deployment == "" {
		return s.post(ctx, d.Message.URL, message)
	}
	own, err := s.Own(ctx, d.Workspace, d.Message.Deployment)
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return outcome{failure: refused.Why, final: true}, nil
	}
	if err == nil {
		message.Body, err = own.Rules.Message(message.Body)
	}
	if err != nil {
		return outcome{}, err
	}
	if err := own.Rules.Check("The address", d.Message.URL); err != nil {
		refused, _ := errors.AsType[*fault.Error](err)
		return outcome{failure: refused.Message, final: true}, nil
	}
	message.header = own.Header
	switch {
	case own.Rules == nil:
	case own.Rules.NoPrivate:
		message.client = s.public
	case own.Rules.NoLoopback:
		message.client = s.remote
	}
	return s.post(ctx, d.Message.URL, message)
}
