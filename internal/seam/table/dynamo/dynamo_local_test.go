//go:build dynamo

package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/seam/table/tabletest"
	"github.com/slipway-run/slipway/internal/test/check"
	emulator "github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

// local is the DynamoDB Local that all tests of a run share.
var local struct {
	endpoint string
	http     *http.Client
}

func TestMain(m *testing.M) {
	stop, err := startLocal()
	if err != nil {
		println("start DynamoDB Local:", err.Error())
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(stop(), goleak.Find(goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))); err != nil {
		println(err.Error())
		code = max(code, 1)
	}
	os.Exit(code)
}

// startLocal returns when DynamoDB Local answers.
func startLocal() (stop func() error, err error) {
	dir, err := os.MkdirTemp("", "slipway-dynamodb-")
	if err != nil {
		return nil, err
	}
	registry, err := child.Open(dir)
	if err != nil {
		return nil, err
	}
	// The first start downloads the program.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	server, err := emulator.Start(ctx, emulator.Config{Root: root, Registry: registry, Output: io.Discard})
	if err != nil {
		return nil, err
	}
	local.endpoint = server.Endpoint()
	local.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	return func() error {
		local.http.CloseIdleConnections()
		return errors.Join(server.Stop(context.Background()), registry.Close(), os.RemoveAll(dir))
	}, nil
}

// configure returns the configuration of a client of DynamoDB Local.
func configure(client aws.HTTPClient) aws.Config {
	cfg := offline(client)
	cfg.BaseEndpoint = aws.String(local.endpoint)
	return cfg
}

// create makes a table that erases no items by itself, because DynamoDB Local erases by the
// time of the machine and not of the test.
func create(tb testing.TB, name string) {
	tb.Helper()
	declared, err := emulator.Declared(root)
	check.Must(tb, err)
	declared.TTL = ""
	check.Must(tb, emulator.CreateTable(tb.Context(), dynamodb.NewFromConfig(configure(local.http)), name, declared))
}

// tableName makes the name of a table from any text.
func tableName(text string) string {
	h := fnv.New64a()
	io.WriteString(h, text)
	return fmt.Sprintf("t-%x", h.Sum64())
}

// openLocal opens a new table.
func openLocal(tb testing.TB, client aws.HTTPClient, opts ...dynamo.Option) *dynamo.Table {
	tb.Helper()
	name := tableName(tb.TempDir())
	create(tb, name)
	t := dynamo.Open(configure(client), name, opts...)
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

func TestConformance(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(t *testing.T, dir string, now clock.Clock) (table.Table, func() error) {
		t.Helper()
		create(t, tableName(dir))
		tb := dynamo.Open(configure(local.http), tableName(dir), dynamo.WithClock(now))
		return tb, tb.Close
	})
}
