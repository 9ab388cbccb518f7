package agentserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/caller"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const (
	// headerEncryptionContext has the context of a request, a JSON object in base64.
	headerEncryptionContext = "X-Encryption-Context"
	// headerRun names the run that an agent's own request comes from, as THREAD/RUN. In requests
	// of other callers, the header counts for nothing.
	headerRun = "X-Slipway-Run"
	// maxEncryptionContext is how many bytes the header may have: the context is stored beside
	// each value.
	maxEncryptionContext = 4 << 10
)

// encrypting returns the context of a request to a deployment whose repository encrypts what the
// server stores. The repository may make the encryption context from the request's user. The
// requests of an agent itself have the context of the run that sends them.
func encrypting(ctx context.Context, known admitted, header http.Header) (context.Context, error) {
	sent, err := encryptionContext(header.Get(headerEncryptionContext))
	if err != nil {
		return ctx, err
	}
	request := cipher.Request{Context: sent}
	if known.principal.Role == workspace.Agent {
		thread, run, _ := strings.Cut(header.Get(headerRun), "/")
		if id.Valid(thread) && id.Valid(run) {
			d := known.Deployment
			ctx = cipher.Like(ctx, keys.Run(d.Workspace, d.Deployment, thread, run), keys.Thread(d.Workspace, d.Deployment, thread))
		}
		return cipher.For(ctx, request), nil
	}
	if request.User = known.user; request.User == nil {
		request.User = caller.User(known.principal, header)
	}
	return cipher.For(ctx, request), nil
}

// encryptionContext reads the header of a request, nil if the request has none.
func encryptionContext(text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	var members map[string]json.RawMessage
	if err != nil || len(text) > maxEncryptionContext || json.Unmarshal(decoded, &members) != nil || members == nil {
		return nil, fault.Shape(fault.Detail{
			Loc: []any{"header", headerEncryptionContext}, Type: "value_error",
			Msg: "Value error, must be a JSON object in base64, of at most 4096 characters",
		})
	}
	return decoded, nil
}
