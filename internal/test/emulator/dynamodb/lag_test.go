//go:build dynamo

package dynamodb_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
	"github.com/slipway-run/slipway/internal/test/template"
)

// lagging is a DynamoDB whose indexes are behind, and its table.
type lagging struct {
	server *dynamodb.Server
	stack  *template.Stack
}

func newLagging(t *testing.T) *lagging {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	read, err := template.Load(filepath.Join(root, "template.yaml"))
	check.Must(t, err)
	stack, err := read.Resolve(template.Values{})
	check.Must(t, err)
	registry, err := child.Open(t.TempDir())
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, registry.Close()) })
	server, err := dynamodb.Start(t.Context(), dynamodb.Config{Root: root, Registry: registry, Output: os.Stderr})
	check.Must(t, err)
	return &lagging{server, stack}
}

// with uses the table while its indexes are behind by a time.
func (l *lagging) with(t *testing.T, lag time.Duration, use func(*dynamo.Table)) {
	t.Helper()
	cfg := func(endpoint string) aws.Config {
		return aws.Config{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		})}
	}
	client := awsdynamodb.NewFromConfig(cfg(l.server.Endpoint()))
	declared := l.stack.Tables["Table"]
	check.Must(t, dynamodb.CreateTable(t.Context(), client, "slipway", declared))
	behind, err := dynamodb.NewLagging(t.Context(), dynamodb.LagConfig{
		Client: client, Endpoint: l.server.Endpoint(), Table: "slipway", Declared: declared, Lag: lag, Log: slog.New(slog.DiscardHandler),
	})
	check.Must(t, err)
	front := httptest.NewServer(behind)
	tb := dynamo.Open(cfg(front.URL), "slipway")
	use(tb)
	check.Must(t, tb.Close())
	front.Close()
	behind.Close()
}

func put(sk, listed string) table.Write {
	item := table.Item{Key: table.Key{PK: "p", SK: sk}, Body: []byte("body")}
	if listed != "" {
		item.Index = map[table.Index]table.Key{table.ByList: {PK: "list", SK: listed}}
	}
	return table.Put{Item: item}
}

// list returns the sort keys of the items in the index.
func list(t *testing.T, tb *dynamo.Table) []string {
	t.Helper()
	page, err := tb.Query(t.Context(), table.Query{Index: table.ByList, PK: "list"})
	check.Must(t, err)
	found := []string{}
	for _, item := range page.Items {
		found = append(found, item.Key.SK+" at "+item.Index[table.ByList].SK)
	}
	return found
}

func TestIndexesAreBehindAsFarAsTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	l := newLagging(t)
	l.with(t, time.Hour, func(tb *dynamo.Table) {
		check.Must(t, tb.Transact(t.Context(), put("a", "1"), put("b", ""), put("c", "3")))
		if _, err := tb.Get(t.Context(), table.Key{PK: "p", SK: "a"}); err != nil {
			t.Errorf("the table itself must not be behind: %v", err)
		}
		if got := list(t, tb); len(got) > 0 {
			t.Errorf("the index has %v at once", got)
		}
	})
	// Writes that were on their way are in the index after a start.
	l.with(t, time.Hour, func(tb *dynamo.Table) {
		if got, want := list(t, tb), []string{"a at 1", "c at 3"}; !slices.Equal(got, want) {
			t.Errorf("the index has %v, want %v", got, want)
		}
		check.Must(t, tb.Transact(t.Context(), table.Delete{Key: table.Key{PK: "p", SK: "a"}}))
		if got := list(t, tb); len(got) != 2 {
			t.Errorf("the index has %v at once", got)
		}
	})
	l.with(t, 20*time.Millisecond, func(tb *dynamo.Table) {
		check.Must(t, tb.Transact(t.Context(), put("a", "4"), put("c", "")))
		check.Must(t, tb.Transact(t.Context(), put("a", "5"), put("d", "0")))
		got, want := []string{}, []string{"d at 0", "a at 5"}
		for deadline := time.Now().Add(time.Minute); !slices.Equal(got, want); got = list(t, tb) {
			if time.Now().After(deadline) {
				t.Fatalf("the index has %v, want %v", got, want)
			}
		}
	})
}
