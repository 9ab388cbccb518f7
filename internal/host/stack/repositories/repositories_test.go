package repositories_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/repositories"
	"github.com/slipway-run/slipway/internal/test/check"
)

// secrets is Secrets Manager: secrets by name, and how often each was read. A request for an
// unknown secret is refused.
type secrets struct {
	*httptest.Server
	mu   sync.Mutex
	kept map[string]string
	read map[string]int
}

func newSecrets(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{kept: map[string]string{}, read: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var asked struct{ SecretId string }
		if err != nil || json.Unmarshal(text, &asked) != nil || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" {
			t.Errorf("got %s %s (%v)", r.Header.Get("X-Amz-Target"), text, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read[asked.SecretId]++
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if s.kept[asked.SecretId] == "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"AccessDeniedException","Message":"no"}`)
			return
		}
		if err := json.NewEncoder(w).Encode(map[string]string{"SecretString": s.kept[asked.SecretId]}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *secrets) keep(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[name] = text
}

func (s *secrets) open(t *testing.T) *stack.Stack {
	t.Helper()
	v := map[string]string{
		"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "SLIPWAY_TABLE": "slipway",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": s.URL, "SLIPWAY_GITHUB_URL": "https://github.com",
		"SLIPWAY_GITHUB_APP": "arn:app", "SLIPWAY_GITHUB_WEBHOOK": "arn:webhook",
	}
	opened, err := stack.Open(func(name string) string { return v[name] }, slog.New(slog.DiscardHandler), stack.NeedTable)
	check.Must(t, err)
	return opened
}

// TestTheGitHubAppIsReadWhenItIsNeeded lets the first request that needs the App fail.
func TestTheGitHubAppIsReadWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	s := newSecrets(t)
	integrations, err := repositories.Integrations(s.open(t))
	check.Must(t, err)
	// An empty callback is refused once the App has been read, and needs no table.
	use := func() error {
		_, err := integrations.CompleteInstall(t.Context(), integration.Callback{})
		return err
	}
	if err := use(); err == nil || fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "arn:app") {
		t.Errorf("without the secret: %v", err)
	}
	s.keep("arn:app", `{"private_key": "hush"`)
	if err := use(); err == nil || fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
		t.Errorf("with a secret that is none: %v", err)
	}
	app, err := json.Marshal(map[string]any{
		"app_id": githubtest.AppID, "slug": githubtest.Slug, "client_id": githubtest.ClientID, "client_secret": githubtest.ClientSecret,
		"private_key": githubtest.PrivateKey(),
	})
	check.Must(t, err)
	s.keep("arn:app", string(app))
	for range 3 {
		if err := use(); !fault.Is(err, fault.Invalid) {
			t.Errorf("with the secret: %v", err)
		}
	}
	if s.read["arn:app"] != 3 || s.read["arn:webhook"] != 0 {
		t.Errorf("secrets were read %v", s.read)
	}
}

// TestTheWebhookSecretsAreReadWhenTheyAreNeeded signs with one of two secrets.
func TestTheWebhookSecretsAreReadWhenTheyAreNeeded(t *testing.T) {
	t.Parallel()
	s := newSecrets(t)
	receiver, err := repositories.Pushes(s.open(t), nil)
	check.Must(t, err)
	const first, second = "the-first-secret", "the-second-secret"
	deliver := func(secret string) error {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte("{}"))
		return receiver.App(t.Context(), push.Delivery{Event: "ping", ID: "1", Signature: "sha256=" + hex.EncodeToString(mac.Sum(nil)), Body: []byte("{}")})
	}
	if err := deliver(first); err == nil || fault.Is(err, fault.Unauthorized) {
		t.Errorf("without the secrets: %v", err)
	}
	s.keep("arn:webhook", `{"webhook_secrets": ["`+first+`", "`+second+`"]}`)
	for secret, good := range map[string]bool{first: true, second: true, "another-secret-here": false} {
		if err := deliver(secret); good != (err == nil) || !good && !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v", secret, err)
		}
	}
	if s.read["arn:webhook"] != 2 || s.read["arn:app"] != 0 {
		t.Errorf("secrets were read %v", s.read)
	}
}
