package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/control/deployment"
)

// knownTexts is how many deployments a process keeps as text, and knownText how large one may be, in bytes.
const (
	knownTexts = 20_000
	knownText  = 2 << 10
)

// texts are deployments as answers show them, but for their secrets: encoding is most of what it costs to show what has not changed. Secrets are opened for each
// answer, and hidden from who may not see them.
type texts = deployment.Known[text]

// text is a deployment with an empty list of secrets.
type text struct {
	whole []byte
	// secrets is where the list begins.
	secrets int
	// url is the address of the agent server that is shown.
	url string
}

// noSecrets is what text has in place of the secrets. No member before it is as free as that something else could look so: in a string the quotes would be escaped.
var noSecrets = []byte(`"secrets":[]`)

// appendShown adds a deployment that was read to a list or an answer, as show has it encoded.
func (s server) appendShown(ctx context.Context, to []byte, d *deployment.Deployment) ([]byte, error) {
	url := s.AgentURL(ctx, d.Deployment)
	known, ok := s.texts.Get(d.Ref, d.Version())
	if !ok || known.url != url {
		var err error
		if known, err = newText(s.showBare(ctx, *d), url); err != nil {
			return nil, err
		}
		if len(known.whole) <= knownText {
			s.texts.Keep(d.Ref, d.Version(), known)
		}
	}
	if len(d.Secrets) == 0 {
		return append(to, known.whole...), nil
	}
	secrets, err := s.showSecrets(ctx, *d)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	to = append(append(to, known.whole[:known.secrets]...), list...)
	return append(to, known.whole[known.secrets+len(`[]`):]...), nil
}

func newText(bare Deployment, url string) (text, error) {
	whole, err := json.Marshal(bare)
	if err != nil {
		return text{}, err
	}
	at := bytes.Index(whole, noSecrets)
	if at < 0 {
		return text{}, fmt.Errorf("the text of deployment %s has no place for secrets", bare.ID)
	}
	return text{whole: whole, secrets: at + len(noSecrets) - len(`[]`), url: url}, nil
}

// appendList adds a page of deployments, as a DeploymentsList has it encoded.
func (s server) appendList(ctx context.Context, to []byte, offset int, page deployment.Page[deployment.Deployment]) ([]byte, error) {
	empty, err := json.Marshal(DeploymentsList{Resources: []Deployment{}, Offset: offset, Cursor: nullable(page.Cursor)})
	if err != nil {
		return nil, err
	}
	end := len(empty) - len(`]}`) // the resources are the last member
	to = append(to, empty[:end]...)
	for i := range page.Items {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = s.appendShown(ctx, to, &page.Items[i]); err != nil {
			return nil, err
		}
		if i == 0 {
			to = slices.Grow(to, len(to)*len(page.Items)*5/4) // the others are about as long
		}
	}
	return append(to, empty[end:]...), nil
}

// encoded is an answer that is encoded already.
type encoded []byte

// VisitGetDeploymentResponse writes a Deployment.
func (e encoded) VisitGetDeploymentResponse(w http.ResponseWriter) error { return e.write(w) }

// encodedList is a list that is encoded in a buffer of lists, which is free for another list once it is written.
type encodedList struct{ buffer *[]byte }

// lists holds buffers: a list of a hundred has some 90 KB, and to get and clear so much anew for each took a twentieth of what a list costs.
var lists = sync.Pool{New: func() any { return new([]byte) }}

// largestList is how much of a buffer is kept for the next list, in bytes.
const largestList = 1 << 20

// VisitListDeploymentsResponse writes a DeploymentsList.
func (l encodedList) VisitListDeploymentsResponse(w http.ResponseWriter) error {
	err := encoded(*l.buffer).write(w)
	if cap(*l.buffer) <= largestList {
		lists.Put(l.buffer)
	}
	return err
}

// write answers as the generated code does.
func (e encoded) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(append(e, '\n')) //nolint:gosec // JSON, and declared as such
	return err
}
