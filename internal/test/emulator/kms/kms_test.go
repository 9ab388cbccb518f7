package kms_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/test/check"
	emulator "github.com/slipway-run/slipway/internal/test/emulator/kms"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	id  = "7f3c1c1e-0000-4000-8000-000000000000"
	arn = "arn:aws:kms:eu-central-1:123456789012:key/" + id
)

// serve makes a client of a service whose key is in a file.
func serve(t *testing.T, path, arn string) *kms.Client {
	t.Helper()
	key := fixtures.KeyAt(t, path)
	service, err := emulator.New(emulator.Config{Key: key, ARN: arn, Log: slog.New(slog.DiscardHandler)})
	check.Must(t, err)
	server := httptest.NewServer(service)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return kms.New(kms.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       "eu-central-1",
		HTTPClient:   &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
}

func generate(t *testing.T, c *kms.Client, bound map[string]string) *kms.GenerateDataKeyOutput {
	t.Helper()
	out, err := c.GenerateDataKey(t.Context(), &kms.GenerateDataKeyInput{KeyId: aws.String(arn), KeySpec: types.DataKeySpecAes256, EncryptionContext: bound})
	check.Must(t, err)
	return out
}

func code(err error) string {
	if failure, ok := errors.AsType[smithy.APIError](err); ok {
		return failure.ErrorCode()
	}
	return fmt.Sprint(err)
}

// TestDataKeys makes a key, and opens it with another service on the same file.
func TestDataKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	first, second := serve(t, path, arn), serve(t, path, arn)
	for _, bound := range []map[string]string{nil, {}, {"a": "1"}, {"a": "1", "b": "2", "c": "ü\"<"}} {
		made := generate(t, first, bound)
		if len(made.Plaintext) != 32 || *made.KeyId != arn || bytes.Contains(made.CiphertextBlob, made.Plaintext) {
			t.Errorf("got %d bytes under %s", len(made.Plaintext), *made.KeyId)
		}
		if bytes.Equal(made.Plaintext, generate(t, first, bound).Plaintext) {
			t.Error("got the same key twice")
		}
		for _, key := range []*string{nil, aws.String(id), aws.String(arn)} {
			out, err := second.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: made.CiphertextBlob, EncryptionContext: bound, KeyId: key})
			check.Must(t, err)
			if !bytes.Equal(out.Plaintext, made.Plaintext) || *out.KeyId != arn || out.EncryptionAlgorithm != types.EncryptionAlgorithmSpecSymmetricDefault {
				t.Errorf("got %d bytes, %s, %s", len(out.Plaintext), *out.KeyId, out.EncryptionAlgorithm)
			}
		}
	}
}

// TestNoContextIsAnEmptyOne checks that leaving the context out is the same as an empty
// context.
func TestNoContextIsAnEmptyOne(t *testing.T) {
	t.Parallel()
	c := serve(t, filepath.Join(t.TempDir(), "key"), arn)
	for _, contexts := range [][2]map[string]string{{nil, {}}, {{}, nil}} {
		in := &kms.DecryptInput{CiphertextBlob: generate(t, c, contexts[0]).CiphertextBlob, EncryptionContext: contexts[1]}
		if _, err := c.Decrypt(t.Context(), in); err != nil {
			t.Error(err)
		}
	}
}

func TestDecryptRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	c := serve(t, path, arn)
	bound := map[string]string{"workspace": "w", "deployment": "d"}
	sealed := generate(t, c, bound).CiphertextBlob
	changed := slices.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, d := range map[string]struct {
		client *kms.Client
		in     kms.DecryptInput
		want   string
	}{
		"no context":        {c, kms.DecryptInput{CiphertextBlob: sealed}, "InvalidCiphertextException"},
		"part of a context": {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: map[string]string{"workspace": "w"}}, "InvalidCiphertextException"},
		"another context":   {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: map[string]string{"workspace": "d", "deployment": "w"}}, "InvalidCiphertextException"},
		"more context":      {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: map[string]string{"workspace": "w", "deployment": "d", "x": ""}}, "InvalidCiphertextException"},
		"changed":           {c, kms.DecryptInput{CiphertextBlob: changed, EncryptionContext: bound}, "InvalidCiphertextException"},
		"cut short":         {c, kms.DecryptInput{CiphertextBlob: sealed[:3], EncryptionContext: bound}, "InvalidCiphertextException"},
		"unknown key":       {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound, KeyId: aws.String("x")}, "NotFoundException"},
		"other algorithm":   {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound, EncryptionAlgorithm: types.EncryptionAlgorithmSpecRsaesOaepSha256}, "InvalidKeyUsageException"},
		"another ARN":       {serve(t, path, arn+"1"), kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound}, "InvalidCiphertextException"},
		"another file":      {serve(t, path+"2", arn), kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound}, "InvalidCiphertextException"},
		"nothing wrong":     {c, kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound}, "<nil>"},
	} {
		if _, err := d.client.Decrypt(t.Context(), &d.in); code(err) != d.want {
			t.Errorf("%s: got %v, want %s", name, err, d.want)
		}
	}
	_, err := c.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: changed})
	if _, ok := errors.AsType[*types.InvalidCiphertextException](err); !ok {
		t.Errorf("got %v, want it as the SDK's type", err)
	}
}

func TestGenerateDataKeySizes(t *testing.T) {
	t.Parallel()
	c := serve(t, filepath.Join(t.TempDir(), "key"), arn)
	for name, d := range map[string]struct {
		in    kms.GenerateDataKeyInput
		bytes int
		want  string
	}{
		"128 bits":     {kms.GenerateDataKeyInput{KeySpec: types.DataKeySpecAes128}, 16, "<nil>"},
		"1024 bytes":   {kms.GenerateDataKeyInput{NumberOfBytes: aws.Int32(1024)}, 1024, "<nil>"},
		"1025 bytes":   {kms.GenerateDataKeyInput{NumberOfBytes: aws.Int32(1025)}, 0, "ValidationException"},
		"no bytes":     {kms.GenerateDataKeyInput{NumberOfBytes: aws.Int32(0)}, 0, "ValidationException"},
		"nothing":      {kms.GenerateDataKeyInput{}, 0, "ValidationException"},
		"both":         {kms.GenerateDataKeyInput{KeySpec: types.DataKeySpecAes128, NumberOfBytes: aws.Int32(16)}, 0, "ValidationException"},
		"unknown spec": {kms.GenerateDataKeyInput{KeySpec: "AES_1"}, 0, "ValidationException"},
		"unknown key":  {kms.GenerateDataKeyInput{KeyId: aws.String("alias/x"), KeySpec: types.DataKeySpecAes256}, 0, "NotFoundException"},
	} {
		if d.in.KeyId == nil {
			d.in.KeyId = aws.String(id)
		}
		out, err := c.GenerateDataKey(t.Context(), &d.in)
		if code(err) != d.want || err == nil && len(out.Plaintext) != d.bytes {
			t.Errorf("%s: got %v, want %s and %d bytes", name, err, d.want, d.bytes)
		}
	}
}

func TestDescribeKey(t *testing.T) {
	t.Parallel()
	c := serve(t, filepath.Join(t.TempDir(), "key"), arn)
	out, err := c.DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String(id)})
	check.Must(t, err)
	if m := out.KeyMetadata; *m.Arn != arn || *m.KeyId != id || !m.Enabled || m.KeyState != types.KeyStateEnabled || *m.AWSAccountId != "123456789012" {
		t.Errorf("got %+v", m)
	}
	if _, err := c.DescribeKey(t.Context(), &kms.DescribeKeyInput{KeyId: aws.String("x")}); code(err) != "NotFoundException" {
		t.Errorf("got %v, want NotFoundException", err)
	}
	if _, err := c.ListKeys(t.Context(), &kms.ListKeysInput{}); code(err) != "UnknownOperationException" {
		t.Errorf("got %v, want UnknownOperationException", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	for name, config := range map[string]emulator.Config{"no key": {ARN: arn}, "no ARN": {Key: key}, "an id": {Key: key, ARN: id}} {
		if _, err := emulator.New(config); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
