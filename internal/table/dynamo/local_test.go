//go:build dynamo

package dynamo_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/table/dynamo"
	"github.com/slipway-run/slipway/internal/table/tabletest"
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
	if err := errors.Join(stop(), goleak.Find()); err != nil {
		println(err.Error())
		code = max(code, 1)
	}
	os.Exit(code)
}

// startLocal returns when DynamoDB Local answers. It ends with this process at the latest, since the script reads from it.
func startLocal() (stop func() error, err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "dynamodb-local-*.log")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("testdata/dynamodb-local.sh", filepath.Join("..", "..", "..", ".tools", "dynamodb-local"), strconv.Itoa(port))
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	local.endpoint = fmt.Sprintf("http://127.0.0.1:%d", port)
	if err := awaitServer(local.endpoint, ended); err != nil {
		return nil, fmt.Errorf("%w (see %s)", err, log.Name())
	}
	local.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	return func() error {
		local.http.CloseIdleConnections()
		return errors.Join(stdin.Close(), <-ended, log.Close(), os.Remove(log.Name()))
	}, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func awaitServer(endpoint string, ended <-chan error) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	late := time.After(3 * time.Minute) // the first time it is fetched
	for {
		if answer, err := client.Get(endpoint); err == nil {
			return answer.Body.Close()
		}
		select {
		case <-again.C:
		case err := <-ended:
			return errors.Join(errors.New("it ended"), err)
		case <-late:
			return errors.New("it does not answer")
		}
	}
}

// configure returns the configuration of a client of DynamoDB Local.
func configure(client aws.HTTPClient) aws.Config {
	cfg := offline(client)
	cfg.BaseEndpoint = aws.String(local.endpoint)
	return cfg
}

// create makes a table that erases nothing by itself, since DynamoDB Local erases by the time of the machine and not of the test.
func create(tb testing.TB, name string) {
	tb.Helper()
	if err := dynamo.CreateWithoutTTL(tb.Context(), dynamo.Open(configure(local.http), name)); err != nil {
		tb.Fatal(err)
	}
}

// tableName makes a name of any text.
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

func TestCreateTable(t *testing.T) {
	t.Parallel()
	name := aws.String(tableName(t.TempDir()))
	tb := dynamo.Open(configure(local.http), *name)
	for range 2 {
		wantError(t, tb.CreateTable(t.Context()), nil)
	}
	client := dynamodb.NewFromConfig(configure(local.http))
	table, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: name})
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range table.Table.GlobalSecondaryIndexes {
		if index.Projection.ProjectionType != types.ProjectionTypeAll {
			t.Errorf("index %s: got projection %s, want all", *index.IndexName, index.Projection.ProjectionType)
		}
	}
	if got := len(table.Table.GlobalSecondaryIndexes); got != 2 {
		t.Errorf("got %d indexes, want 2", got)
	}
	expiry, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: name})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, expiry.TimeToLiveDescription.AttributeName, aws.String(dynamo.TTLAttribute))
}
