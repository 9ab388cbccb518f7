package agentserver

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// claim claims the key of a request, whose path names the deployment.
func (s server) claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error) {
	d, encrypted := served(ctx), ""
	if d.Encrypted {
		encrypted = d.Deployment
	}
	// A user of the repository's own authentication has keys of its own.
	if user := ownUser(ctx); user != nil {
		identity, err := identityOf(user)
		if err != nil {
			return nil, nil, err
		}
		fingerprint = sha256.Sum256(append(fingerprint[:], identity...))
		key = fmt.Sprintf("%x", sha256.Sum256(record.Encode([]string{d.Deployment, identity, key})))
	}
	return s.Answers.Claim(ctx, idempotency.Request{Workspace: d.Workspace, Key: key, Encrypted: encrypted, Fingerprint: fingerprint})
}
