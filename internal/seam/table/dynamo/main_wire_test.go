package dynamo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

// wire stands for the network and DynamoDB behind it: it answers requests one after the other
// with the given answers.
type wire struct {
	t *testing.T

	mu       sync.Mutex
	answers  []answer
	requests []request
}

// answer is the outcome of one request.
type answer func() (*http.Response, error)

// request is a request that was sent.
type request struct {
	operation string
	body      []byte
}

func newWire(t *testing.T, answers ...answer) *wire {
	w := &wire{t: t, answers: answers}
	t.Cleanup(func() {
		if left := len(w.answers) - len(w.requests); left > 0 {
			t.Errorf("%d answers were not asked for", left)
		}
	})
	return w
}

// open opens a table at the other end of the wire.
func (w *wire) open(opts ...dynamo.Option) *dynamo.Table {
	tb := dynamo.Open(offline(w), "slipway", opts...)
	w.t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return tb
}

// Do answers a request. A request beyond the last answer gets the last answer again.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, request{operation: operation, body: body})
	answer := w.answers[min(len(w.requests), len(w.answers))-1]
	return answer()
}

// sent returns the requests so far.
func (w *wire) sent() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]request(nil), w.requests...)
}

func (w *wire) wantOperations(want ...string) {
	w.t.Helper()
	var got []string
	for _, r := range w.sent() {
		got = append(got, r.operation)
	}
	wantEqual(w.t, got, want)
}

// decode reads a request's body.
func (r request) decode(t *testing.T) map[string]any {
	t.Helper()
	var body map[string]any
	check.Must(t, json.Unmarshal(r.body, &body))
	return body
}

// reply is a response with a body in DynamoDB's JSON.
func reply(status int, body string) answer {
	return func() (*http.Response, error) {
		return &http.Response{
			StatusCode: status,
			Header:     http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body:       io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// done is the answer to a write.
var done = reply(http.StatusOK, `{}`)

// refuse is an error of the service.
func refuse(status int, code string) answer {
	return reply(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"injected"}`, code))
}

// cancel is a transaction that was not applied, with a reason for each write.
func cancel(reasons ...string) answer {
	return reply(http.StatusBadRequest, fmt.Sprintf(
		`{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"injected","CancellationReasons":[%s]}`,
		strings.Join(reasons, ",")))
}

func because(code string) string { return fmt.Sprintf(`{"Code":%q,"Message":"injected"}`, code) }

// failedOn is the reason of a condition that did not hold on an item, in DynamoDB's JSON.
func failedOn(item string) string {
	return fmt.Sprintf(`{"Code":"ConditionalCheckFailed","Message":"injected","Item":%s}`, item)
}

// lost is a response that never comes.
func lost() (*http.Response, error) { return nil, syscall.ECONNRESET }

// torn is a response that breaks off.
func torn() (*http.Response, error) {
	r, err := reply(http.StatusOK, ``)()
	if err == nil {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewBufferString(`{"It`), brokenReader{}))
	}
	return r, err
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// item is a stored item with integers for attributes, in DynamoDB's JSON. more are further
// members.
func item(key table.Key, attrs map[string]int, more ...string) string {
	var texts []string
	for name, n := range attrs {
		texts = append(texts, fmt.Sprintf(`%q:{"N":"%d"}`, name, n))
	}
	more = append([]string{
		fmt.Sprintf(`"pk":{"S":%q},"sk":{"S":%q},"attrs":{"M":{%s}}`, key.PK, key.SK, strings.Join(texts, ",")),
	}, more...)
	return "{" + strings.Join(more, ",") + "}"
}

func expiring(at int64) string { return fmt.Sprintf(`"expires":{"N":"%d"}`, at) }

func chunked(id string, chunks int) string {
	return fmt.Sprintf(`"body_id":{"S":%q},"body_chunks":{"N":"%d"}`, id, chunks)
}

func inline(body string) string {
	return fmt.Sprintf(`"body":{"B":%q}`, base64.StdEncoding.EncodeToString([]byte(body)))
}

func key(pk, sk string) table.Key { return table.Key{PK: pk, SK: sk} }

// increment is an update that must not be applied twice.
var increment = table.Update{Key: key("p", "a"), Add: map[string]int64{"n": 1}}

// offline is a configuration that looks nothing up. Its settings for retries, which could also
// come from an environment variable, must be ignored.
func offline(client aws.HTTPClient) aws.Config {
	return aws.Config{
		Region:     "eu-central-1",
		HTTPClient: client,

		RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}
}

func wantEqual(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("got(+) differs from want(-):\n%s", diff)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}
