package kms_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/seam/secret/kms"
	"github.com/slipway-run/slipway/internal/seam/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const keyARN = "arn:aws:kms:eu-central-1:000000000000:key/00000000-0000-0000-0000-000000000001"

// server speaks the part of KMS's protocol that the package needs. A wrapped key is a handle
// to a key that the server remembers.
type server struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	wrapped map[string]wrapped
	// refusals are the errors that the next requests get.
	refusals []refusal
	calls    map[string]int
	// hold, when not nil, makes requests wait until it is closed.
	hold chan struct{}
}

type wrapped struct {
	plain   []byte
	context map[string]string
}

type refusal struct {
	status        int
	name, message string
}

func newServer(t *testing.T) *server {
	s := &server{t: t, wrapped: map[string]wrapped{}, calls: map[string]int{}}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	s.url = listening.URL
	return s
}

// client is the SDK's own client, but it retries at once.
func (s *server) client() *awskms.Client {
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	return awskms.NewFromConfig(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &s.url, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		KeyID             string `json:"KeyId"`
		KeySpec           string
		EncryptionContext map[string]string
		CiphertextBlob    []byte
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.calls[operation]++
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	refuse := func(why refusal) {
		w.Header().Set("X-Amzn-Errortype", why.name)
		w.WriteHeader(why.status)
		json.NewEncoder(w).Encode(map[string]string{"__type": why.name, "message": why.message})
	}
	switch {
	case len(s.refusals) > 0:
		refuse(s.refusals[0])
		s.refusals = s.refusals[1:]
	case in.KeyID != keyARN:
		refuse(refusal{400, "IncorrectKeyException", "another key"})
	case operation == "GenerateDataKey" && in.KeySpec == "AES_256":
		made := wrapped{make([]byte, 32), in.EncryptionContext}
		rand.Read(made.plain)
		handle := rand.Text()
		s.wrapped[handle] = made
		json.NewEncoder(w).Encode(map[string]any{"KeyId": keyARN, "Plaintext": made.plain, "CiphertextBlob": []byte(handle)})
	case operation == "Decrypt":
		found, ok := s.wrapped[string(in.CiphertextBlob)]
		if !ok || !maps.Equal(found.context, in.EncryptionContext) {
			refuse(refusal{400, "InvalidCiphertextException", ""})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"KeyId": keyARN, "Plaintext": found.plain})
	default:
		refuse(refusal{400, "UnsupportedOperationException", operation})
	}
}

func (s *server) refuse(why ...refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = why
}

func (s *server) count(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[operation]
}

func (s *server) config(tb table.Table) kms.Config {
	return kms.Config{Client: s.client(), KeyID: keyARN, Table: tb, Context: map[string]string{"slipway": "production"}}
}
