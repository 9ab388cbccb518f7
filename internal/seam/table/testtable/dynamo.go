//go:build dynamo

package testtable

import (
	"context"
	"crypto/rand"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

// Open opens a new table on a clock. The table is closed when the test ends. It does not erase
// expired items by itself: DynamoDB Local would use the machine's clock.
func Open(t testing.TB, now clock.Clock) table.Table {
	t.Helper()
	endpoint := os.Getenv("SLIPWAY_TEST_DYNAMODB")
	if endpoint == "" {
		t.Fatal("SLIPWAY_TEST_DYNAMODB is not set: run it with internal/test/emulator/dynamodb/with")
	}
	connections := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(connections.CloseIdleConnections)
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: connections},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}
	name := rand.Text()
	opened := dynamo.Open(config, name, dynamo.WithClock(now))
	closing(t, opened)
	if _, err := dynamodb.NewFromConfig(config).CreateTable(t.Context(), dynamo.Schema(name)); err != nil {
		t.Fatal(err)
	}
	return opened
}
