//go:build dynamo

package dynamodb_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

// TestWhatIsKeptOutlivesTheServer also checks that the adapter can use the table that the
// template declares.
func TestWhatIsKeptOutlivesTheServer(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "..")
	declared, err := dynamodb.Declared(root)
	check.Must(t, err)
	registry, err := child.Open(t.TempDir())
	check.Must(t, err)
	config := dynamodb.Config{Root: root, Dir: t.TempDir(), Registry: registry, Output: os.Stderr}
	key := table.Key{PK: "one", SK: "two"}

	with := func(use func(*dynamo.Table) error) {
		t.Helper()
		server, err := dynamodb.Start(t.Context(), config)
		check.Must(t, err)
		cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(server.Endpoint()), Credentials: aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
			})}
		for range 2 {
			check.Must(t, dynamodb.CreateTable(t.Context(), awsdynamodb.NewFromConfig(cfg), "slipway", declared))
		}
		tb := dynamo.Open(cfg, "slipway")
		if err := use(tb); err != nil {
			t.Error(err)
		}
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
		if err := server.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	with(func(tb *dynamo.Table) error {
		return tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key, Body: []byte("kept")}, If: table.Absent()})
	})
	with(func(tb *dynamo.Table) error {
		item, err := tb.Get(t.Context(), key)
		if err == nil && string(item.Body) != "kept" {
			t.Errorf("got %q", item.Body)
		}
		return err
	})
	if err := registry.Close(); err != nil {
		t.Error(err)
	}
}
