package agentserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// answers is the store of package idempotency with the interface web.Answers. The path names
// the deployment.
type answers struct{ *idempotency.Store }

// Claim implements web.Answers.
func (a answers) Claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*web.Answer, web.Attempt, error) {
	// A user of the repository's own authentication has keys of its own.
	if user := ownUser(ctx); user != nil {
		identity, err := identityOf(user)
		if err != nil {
			return nil, nil, err
		}
		fingerprint = sha256.Sum256(append(fingerprint[:], identity...))
		key = fmt.Sprintf("%x", sha256.Sum256(record.Encode([]string{served(ctx).Deployment, identity, key})))
	}
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

// settled returns the note that stores the answer for repetitions of a request together with
// the run that the request creates. The answer is made from the run. A request without an
// Idempotency-Key has no repetitions.
func settled(ctx context.Context, send func(run.Run, http.ResponseWriter) error) []record.Note[run.Run] {
	claimed, ok := web.Attempted(ctx).(attempt)
	if !ok {
		return nil
	}
	return []record.Note[run.Run]{func(ctx context.Context, made run.Run) (table.Write, error) {
		answer, err := web.Rehearse(func(w http.ResponseWriter) error { return send(made, w) }, web.Untagged)
		if err != nil || len(answer.Body) > web.MostSettled {
			return nil, err
		}
		return claimed.AnswerWrite(ctx, idempotency.Answer(answer))
	}}
}

func (a attempt) Keep(ctx context.Context, answer web.Answer) error {
	return a.Attempt.Keep(ctx, idempotency.Answer(answer))
}
