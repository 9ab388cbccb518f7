// Package kms answers the clients of the Key Management Service on one machine: data keys are
// made and opened under one key, which is kept in a file (secret/keyfile). A ciphertext is
// bound to the key's ARN and to the encryption context, as with the service. It is a part of the
// program that runs the functions on one machine, which needs no Python, as moto does.
package kms

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/test/emulator/awsjson"
)

// Config holds the parts and settings of a service.
type Config struct {
	// Key encrypts the data keys. Required.
	Key secret.Sealer
	// ARN names the key, arn:aws:kms:<region>:<account>:key/<id>. A client may also use the id
	// alone. Required.
	ARN string
	// Log gets failures of the service itself; the default is slog's.
	Log *slog.Logger
}

// Service answers requests. Make one with New.
type Service struct {
	http    awsjson.Service
	key     secret.Sealer
	arn, id string
	account string
}

// New makes a service with one key.
func New(config Config) (*Service, error) {
	parts := strings.Split(config.ARN, ":")
	if config.Key == nil || len(parts) != 6 || parts[2] != "kms" || !strings.HasPrefix(parts[5], "key/") {
		return nil, errors.New("new KMS emulator: Key and ARN are required, the latter as arn:aws:kms:<region>:<account>:key/<id>")
	}
	s := &Service{key: config.Key, arn: config.ARN, id: strings.TrimPrefix(parts[5], "key/"), account: parts[4]}
	s.http = awsjson.Service{
		Target: "TrentService", Version: "1.1", Log: cmp.Or(config.Log, slog.Default()),
		Operations: map[string]awsjson.Operation{
			"GenerateDataKey": awsjson.Do(s.generateDataKey),
			"Decrypt":         awsjson.Do(s.decrypt),
			"DescribeKey":     awsjson.Do(s.describeKey),
		},
	}
	return s, nil
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.ServeHTTP(w, r) }

// encryptionContext is the context to which a ciphertext is bound, besides its key.
type encryptionContext map[string]string

// bound returns the same value for two contexts if and only if they are equal.
func (s *Service) bound(context encryptionContext) (secret.Bound, error) {
	if context == nil {
		context = encryptionContext{}
	}
	text, err := json.Marshal(context) // in the order of the names
	return secret.Bound{Workspace: s.arn, Resource: string(text)}, err
}

// check refuses every key except the service's key.
func (s *Service) check(key string) error {
	if key != s.id && key != s.arn {
		return &awsjson.Error{Name: "NotFoundException", Message: fmt.Sprintf("Key '%s' does not exist", key)}
	}
	return nil
}

type generateRequest struct {
	Key     string            `json:"KeyId"`
	Spec    string            `json:"KeySpec"`
	Bytes   *int              `json:"NumberOfBytes"`
	Context encryptionContext `json:"EncryptionContext"`
}

type dataKey struct {
	Ciphertext []byte `json:"CiphertextBlob"`
	Plaintext  []byte
	Key        string `json:"KeyId"`
}

func (s *Service) generateDataKey(ctx context.Context, in generateRequest) (*dataKey, error) {
	if err := s.check(in.Key); err != nil {
		return nil, err
	}
	size, err := in.size()
	if err != nil {
		return nil, err
	}
	bound, err := s.bound(in.Context)
	if err != nil {
		return nil, err
	}
	key := make([]byte, size)
	rand.Read(key) // never returns an error: the program ends when the system has no randomness
	sealed, err := s.key.Seal(ctx, bound, key)
	return &dataKey{sealed, key, s.arn}, err
}

// maxKey is how large a data key may be, in bytes.
const maxKey = 1024

// size returns the length of the data key in bytes, which a request gives in one of two ways.
func (in *generateRequest) size() (int, error) {
	switch {
	case in.Spec == "AES_256" && in.Bytes == nil:
		return 32, nil
	case in.Spec == "AES_128" && in.Bytes == nil:
		return 16, nil
	case in.Spec == "" && in.Bytes != nil && *in.Bytes >= 1 && *in.Bytes <= maxKey:
		return *in.Bytes, nil
	}
	return 0, &awsjson.Error{Name: "ValidationException", Message: "Please specify either number of bytes (1 to 1024) or key spec (AES_256 or AES_128)."}
}

type decryptRequest struct {
	Ciphertext []byte            `json:"CiphertextBlob"`
	Key        string            `json:"KeyId"`
	Context    encryptionContext `json:"EncryptionContext"`
	Algorithm  string            `json:"EncryptionAlgorithm"`
}

const algorithm = "SYMMETRIC_DEFAULT"

type plaintext struct {
	Plaintext []byte
	Key       string `json:"KeyId"`
	Algorithm string `json:"EncryptionAlgorithm"`
}

func (s *Service) decrypt(ctx context.Context, in decryptRequest) (*plaintext, error) {
	if in.Key != "" {
		if err := s.check(in.Key); err != nil {
			return nil, err
		}
	}
	if cmp.Or(in.Algorithm, algorithm) != algorithm {
		return nil, &awsjson.Error{Name: "InvalidKeyUsageException", Message: "The key is used with " + algorithm + "."}
	}
	bound, err := s.bound(in.Context)
	if err != nil {
		return nil, err
	}
	key, err := s.key.Open(ctx, bound, in.Ciphertext)
	if err != nil { // the service does not name the reason either
		return nil, &awsjson.Error{Name: "InvalidCiphertextException"}
	}
	return &plaintext{key, s.arn, algorithm}, nil
}

type keyDescription struct {
	Metadata keyMetadata `json:"KeyMetadata"`
}

type keyMetadata struct {
	Account    string   `json:"AWSAccountId"`
	ID         string   `json:"KeyId"`
	ARN        string   `json:"Arn"`
	Enabled    bool     `json:"Enabled"`
	State      string   `json:"KeyState"`
	Usage      string   `json:"KeyUsage"`
	Spec       string   `json:"KeySpec"`
	Manager    string   `json:"KeyManager"`
	Origin     string   `json:"Origin"`
	Algorithms []string `json:"EncryptionAlgorithms"`
}

func (s *Service) describeKey(_ context.Context, in struct {
	Key string `json:"KeyId"`
}) (*keyDescription, error) {
	if err := s.check(in.Key); err != nil {
		return nil, err
	}
	return &keyDescription{keyMetadata{
		Account: s.account, ID: s.id, ARN: s.arn, Enabled: true, State: "Enabled", Usage: "ENCRYPT_DECRYPT", Spec: algorithm,
		Manager: "CUSTOMER", Origin: "AWS_KMS", Algorithms: []string{algorithm},
	}}, nil
}
