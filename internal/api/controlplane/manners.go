package controlplane

import (
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// answers keeps the answers of package idempotency, in the form that package web requires.
type answers struct{ *idempotency.Store }

// Claim implements web.Answers. The meaning of a request and the content of its answer depend
// on the caller and its role, so both are a part of the fingerprint.
func (a answers) Claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*web.Answer, web.Attempt, error) {
	principal := auth.Of(ctx)
	found, claimed, err := a.Store.Claim(ctx, idempotency.Request{
		Workspace: principal.Workspace, Key: key, Fingerprint: sha256.Sum256(append(fingerprint[:], string(principal.Role)+" "+self(principal)...)),
	})
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

// shownOnce stores, together with a new key, the answer to repetitions of its request: not the
// text of the key, which is not stored, but the id of the key. A request without an
// Idempotency-Key has no repetitions.
func shownOnce(ctx context.Context) []apikey.Note {
	claimed, ok := web.Attempted(ctx).(attempt)
	if !ok {
		return nil
	}
	return []apikey.Note{func(ctx context.Context, made apikey.Key) (table.Write, error) {
		refusal := web.Refusal(fault.New(fault.Conflict, "This request has made API key ID %s, whose text is in the first answer only. "+
			"If that was lost, revoke the key, and make another with a new Idempotency-Key.", made.ID))
		return claimed.AnswerWrite(ctx, idempotency.Answer(refusal))
	}}
}

// settledChange stores, together with a new or changed deployment, the answer to repetitions of
// its request: an answer that shows the deployment.
func (s server) settledChange(ctx context.Context, answer func(Deployment) send) []deployment.Note {
	return settled(ctx, func(d deployment.Deployment) (send, int64, error) {
		shown, err := s.show(ctx, d)
		return answer(shown), d.Version(), err
	})
}

// send sends an answer.
type send = func(http.ResponseWriter) error

// settled stores, together with a new value, the answer to repetitions of its request. The
// answer is read from the value while it is made, so it is the answer that this request gets.
// The version is the version of web.Rehearse. A request without an Idempotency-Key has no
// repetitions.
func settled[T any](ctx context.Context, answered func(made T) (send, int64, error)) []record.Note[T] {
	claimed, ok := web.Attempted(ctx).(attempt)
	if !ok {
		return nil
	}
	return []record.Note[T]{func(ctx context.Context, made T) (table.Write, error) {
		send, version, err := answered(made)
		if err != nil {
			return nil, err
		}
		answer, err := web.Rehearse(send, version)
		if err != nil || len(answer.Body) > web.MostSettled {
			return nil, err
		}
		return claimed.AnswerWrite(ctx, idempotency.Answer(answer))
	}}
}

// guard stands before all operations: it authenticates a request, counts it, and checks whether
// the caller may make it.
func (s server) guard(mux *web.Mux) web.Guard {
	authenticate := s.authenticate(mux)
	count := mux.Counted(func(r *http.Request) string {
		principal := auth.Of(r.Context())
		return principal.Workspace + "\x00" + principal.Key + "\x00" + principal.Subject
	})
	return func(o web.Operation) web.Middleware {
		authorize := s.authorize(mux, o)
		return func(next http.Handler) http.Handler { return authenticate(count(authorize(next))) }
	}
}
