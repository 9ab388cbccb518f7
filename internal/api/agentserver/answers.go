package agentserver

import (
	"context"
	"crypto/sha256"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// answers keeps the answers of package idempotency, as package web wants them kept. The path names the deployment.
type answers struct{ *idempotency.Store }

// Claim implements web.Answers.
func (a answers) Claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*web.Answer, web.Attempt, error) {
	found, claimed, err := a.Store.Claim(ctx, idempotency.Request{Workspace: served(ctx).Workspace, Key: key, Fingerprint: fingerprint})
	switch {
	case err != nil:
		return nil, nil, err
	case claimed != nil:
		return nil, attempt{claimed}, nil
	}
	return (*web.Answer)(found), nil, nil
}

// attempt implements web.Attempt.
type attempt struct{ *idempotency.Attempt }

func (a attempt) Keep(ctx context.Context, answer web.Answer) error {
	return a.Attempt.Keep(ctx, idempotency.Answer(answer))
}
