package controlplane

import (
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// claim claims the key of a request. The meaning of a request and the content of its answer
// depend on the caller and its role, so both are a part of the fingerprint.
func (s server) claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error) {
	principal := auth.Of(ctx)
	return s.Answers.Claim(ctx, idempotency.Request{
		Workspace: principal.Workspace, Key: key, Fingerprint: sha256.Sum256(append(fingerprint[:], string(principal.Role)+" "+self(principal)...)),
	})
}

// storeKeyRefusal stores, together with a new key, the answer to repetitions of its request: not
// the text of the key, which is not stored, but the id of the key.
func storeKeyRefusal(ctx context.Context) []apikey.Note {
	return web.StoreRefusal(ctx, func(created apikey.Key) *fault.Error {
		return fault.New(fault.Conflict, "This request has made API key ID %s, whose text is in the first answer only. "+
			"If that was lost, revoke the key, and make another with a new Idempotency-Key.", created.ID)
	})
}

// storeDeploymentAnswer stores, together with a new or changed deployment, the answer to
// repetitions of its request: an answer that shows the deployment.
func (s server) storeDeploymentAnswer(ctx context.Context, answer func(Deployment) web.Send) []deployment.Note {
	return web.StoreAnswer(ctx, func(d deployment.Deployment) (web.Send, string, int64, error) {
		shown, err := s.show(ctx, d)
		return answer(shown), d.Deployment, d.Version(), err
	})
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
