package push

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Builder makes a revision of a deployment whose branch was moved to a new commit. A
// deployment that is gone, being deleted or not allowed to be built is a fault.NotFound,
// fault.Conflict or fault.Invalid: the push is not for it.
type Builder interface {
	Build(ctx context.Context, workspace, deployment, commit string) error
	// Exists reports whether there is such a deployment at all.
	Exists(ctx context.Context, workspace, deployment string) (bool, error)
}

// Installations provides the installations of the GitHub App.
type Installations interface {
	// Workspaces returns the workspaces that an installation is bound to.
	Workspaces(ctx context.Context, installation int64) ([]string, error)
	// Removed notes that an installation was removed at GitHub. Changed notes that an
	// installation may reach other repositories than before.
	Removed(ctx context.Context, installation int64) error
	Changed(installation int64)
}

// MaxPayload is the largest size of a delivery: the largest that GitHub sends.
const MaxPayload = 25 << 20

// minSecret is the smallest length of a webhook's secret: a shorter secret can be guessed.
const minSecret = 16

// Config is the configuration of a Receiver.
type Config struct {
	Table table.Table
	// Hasher derives the secrets of deployments' webhooks.
	Hasher        func(context.Context) (secret.Hasher, error)
	Now           clock.Clock
	Builder       Builder
	Installations Installations
	// Secrets returns the webhook secrets of the GitHub App. Each secret is valid: while one
	// secret replaces another there are two. Secrets is called for each delivery; nil means
	// that there is no secret.
	Secrets func(context.Context) ([]string, error)
	// Log receives why a delivery does nothing; the default is slog's default logger.
	Log *slog.Logger
}

// Receiver receives deliveries of webhooks.
type Receiver struct{ cfg Config }

// NewReceiver returns a receiver. Without Secrets it refuses all deliveries to App.
func NewReceiver(c Config) *Receiver {
	c.Log = cmp.Or(c.Log, slog.Default())
	return &Receiver{c}
}

// ParseSecrets reads the webhook secrets of the GitHub App from the JSON in which operators
// keep them: webhook_secrets, a list. It ignores other members. No error shows a secret.
func ParseSecrets(text []byte) ([]string, error) {
	var kept struct {
		Secrets []string `json:"webhook_secrets"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		// The error may quote a secret.
		return nil, errors.New("the webhook secrets of the GitHub App are not JSON with the list webhook_secrets")
	}
	return kept.Secrets, checkSecrets(kept.Secrets)
}

// checkSecrets refuses webhook secrets that could be guessed.
func checkSecrets(secrets []string) error {
	for _, s := range secrets {
		if len(s) < minSecret {
			return fmt.Errorf("a webhook secret of the GitHub App has %d characters; it needs %d at least", len(s), minSecret)
		}
	}
	return nil
}

// appSecrets are the webhook secrets of the GitHub App.
func (r *Receiver) appSecrets(ctx context.Context) ([]string, error) {
	if r.cfg.Secrets == nil {
		return nil, nil
	}
	secrets, err := r.cfg.Secrets(ctx)
	if err == nil {
		err = checkSecrets(secrets)
	}
	return secrets, err
}

// Delivery is one delivery of a webhook, as it was received.
type Delivery struct {
	// Event, ID and Signature are the headers X-GitHub-Event, X-GitHub-Delivery and
	// X-Hub-Signature-256.
	Event, ID, Signature string
	// Token is the header X-Gitlab-Token, which GitLab's webhooks have in place of a
	// signature. Their Event is X-Gitlab-Event. Their ID is Idempotency-Key, or
	// X-Gitlab-Event-UUID where there is no key.
	Token string
	// Body is the raw body.
	Body []byte
}

// ExpectsApp refuses a request, before its body is read, that cannot be a delivery of the
// GitHub App: its headers contain no signature, or there is no secret to check a signature
// with.
func (r *Receiver) ExpectsApp(ctx context.Context, d Delivery) error {
	secrets, err := r.appSecrets(ctx)
	if err == nil && len(secrets) == 0 {
		err = unauthorized()
	}
	return errors.Join(err, d.stated())
}

// Expects refuses a request, before its body is read, that cannot be a delivery of one
// deployment's webhook: it is not signed, or there is no such deployment.
func (r *Receiver) Expects(ctx context.Context, workspace, deployment string, d Delivery) error {
	if !id.Valid(workspace) || !id.Valid(deployment) {
		return unauthorized()
	}
	if err := r.stated(ctx, workspace, deployment, d); err != nil {
		return err
	}
	exists, err := r.cfg.Builder.Exists(ctx, workspace, deployment)
	if err == nil && !exists {
		err = unauthorized()
	}
	return err
}

// App takes a delivery of the GitHub App's webhook. If App returns no error, the delivery is
// accepted, whether or not it causes any work. A bad signature is a fault.Unauthorized. After
// any error except a fault.Invalid the delivery may be sent again.
func (r *Receiver) App(ctx context.Context, d Delivery) error {
	secrets, err := r.appSecrets(ctx)
	if err != nil {
		return err
	}
	if err := d.check(signed(d.Body, d.Signature, secrets)); err != nil {
		return err
	}
	switch d.Event {
	case eventPush, eventInstallation, eventRepositories:
	default:
		return nil
	}
	p, err := parse(d.Body)
	if err != nil || p.Installation.ID == 0 {
		return err
	}
	switch {
	case d.Event == eventPush:
		return r.pushed(ctx, d, p)
	case d.Event == eventInstallation && p.Action == "deleted":
		return r.cfg.Installations.Removed(ctx, p.Installation.ID)
	default:
		r.cfg.Installations.Changed(p.Installation.ID)
		return nil
	}
}

// HookSecret is the secret of the webhook of one deployment, which a person enters at the
// repository's host. It is derived, so that it need not be stored.
func (r *Receiver) HookSecret(ctx context.Context, workspace, deployment string) (string, error) {
	hasher, err := r.cfg.Hasher(ctx)
	if err != nil {
		return "", fmt.Errorf("derive webhook secret: %w", err)
	}
	return hex.EncodeToString(hasher.MAC("push hook", []byte(workspace+"/"+deployment))), nil
}

// Deployment takes a delivery of the webhook of one deployment. A delivery to an unknown
// deployment counts as a bad signature, because no sender has its secret.
func (r *Receiver) Deployment(ctx context.Context, workspace, deployment string, d Delivery) error {
	if !id.Valid(workspace) || !id.Valid(deployment) {
		return unauthorized()
	}
	secret, err := r.HookSecret(ctx, workspace, deployment)
	if err != nil {
		return err
	}
	good, event := signed(d.Body, d.Signature, []string{secret}), eventPush
	if d.Token != "" {
		good, event = d.bears(secret), eventGitLab
	}
	if err := d.check(good); err != nil || d.Event != event {
		return err
	}
	p, err := parse(d.Body)
	if err != nil {
		return err
	}
	c, ok := p.change()
	if !ok {
		return nil
	}
	c.own = true
	ctx, cancel := ownTime(ctx)
	defer cancel()
	return r.deliver(ctx, target{workspace, deployment}, d, c)
}

// check refuses a delivery whose signature or token is not valid, or that has no id.
func (d Delivery) check(good bool) error {
	if len(d.Body) > MaxPayload {
		return fault.New(fault.TooLarge, "The payload is larger than %d MB.", MaxPayload>>20)
	}
	if !good {
		return unauthorized()
	}
	if d.ID == "" || len(d.ID) > 200 {
		return fault.New(fault.Invalid, "The header X-GitHub-Delivery, or GitLab's Idempotency-Key or X-Gitlab-Event-UUID, is missing, or is no id.")
	}
	return nil
}

// stated refuses a delivery whose header cannot be the signature of any body.
func (d Delivery) stated() error {
	if _, ok := parseSignature(d.Signature); !ok {
		return unauthorized()
	}
	return nil
}

func parseSignature(signature string) ([]byte, bool) {
	text, ok := strings.CutPrefix(signature, "sha256=")
	sent, err := hex.DecodeString(text)
	return sent, ok && err == nil && len(sent) == sha256.Size
}

// signed checks X-Hub-Signature-256 with all secrets: the time does not reveal which is valid.
func signed(body []byte, signature string, secrets []string) bool {
	sent, ok := parseSignature(signature)
	if !ok {
		return false
	}
	good := false
	for _, s := range secrets {
		mac := hmac.New(sha256.New, []byte(s))
		mac.Write(body)
		good = hmac.Equal(mac.Sum(nil), sent) || good
	}
	return good
}

// unauthorized is the only fault for deliveries without a valid signature: it explains nothing.
func unauthorized() error { return fault.New(fault.Unauthorized, "The signature is not valid.") }
