//go:build cost

package cost_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

var built = flag.String("built", "", "directory of a project that was built, with functions and bin/slipway-local (default: this one)")

// patience bounds every wait.
const patience = 2 * time.Minute

// local is shared by the tests: DynamoDB Local, the project's directory and a directory for
// built files.
var local struct {
	endpoint  string
	transport http.RoundTripper
	root, dir string
	registry  *child.Registry
}

func TestMain(m *testing.M) {
	flag.Parse()
	stop, err := start()
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	code := m.Run()
	if err := stop(); err != nil {
		println(err.Error())
		code = max(code, 1)
	}
	os.Exit(code)
}

func start() (stop func() error, err error) {
	if local.root, err = filepath.Abs(filepath.Join("..", "..", "..", "..", "..")); err != nil {
		return nil, err
	}
	if *built == "" {
		*built = local.root
	}
	if local.dir, err = os.MkdirTemp("", "slipway-cost-"); err != nil {
		return nil, err
	}
	if local.registry, err = child.Open(filepath.Join(local.dir, "processes")); err != nil {
		return nil, err
	}
	// The first start downloads the program.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := dynamodb.Start(ctx, dynamodb.Config{Root: local.root, Registry: local.registry, Output: io.Discard})
	if err != nil {
		return nil, err
	}
	local.endpoint = server.Endpoint()
	local.transport = &http.Transport{MaxIdleConnsPerHost: 64}
	return func() error {
		return errors.Join(server.Stop(context.Background()), local.registry.Close(), os.RemoveAll(local.dir))
	}, nil
}

// openTable opens a table at an endpoint.
func openTable(endpoint, name string) *dynamo.Table { return dynamo.Open(configure(endpoint), name) }

func configure(endpoint string) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	}
}
