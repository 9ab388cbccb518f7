package iam_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/iam"
)

const (
	tableARN = "arn:aws:dynamodb:us-east-1:000000000000:table/Table"
	keyARN   = "arn:aws:kms:us-east-1:000000000000:key/Key"
	runARN   = "arn:aws:states:us-east-1:000000000000:stateMachine:slipway-run"
)

// recorded sends a request to a service behind a recorder, and returns the noted calls and the
// status of the answer.
func recorded(t *testing.T, who, service, operation, body string) ([]iam.Call, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	recorder, err := iam.Open(iam.Config{
		File: file, Functions: []string{"Runs"}, Tables: map[string]string{"t-1": tableARN}, Log: slog.New(slog.DiscardHandler),
	})
	check.Must(t, err)
	handler := recorder.Before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
			t.Errorf("the service reads %q, %v; want %q", got, err, body)
		}
	}))
	var status int
	for range 2 { // the second request adds nothing new
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		request.Header.Set("X-Amz-Target", "Service_1."+operation)
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who+"/20260101/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		status = answer.Code
	}
	check.Must(t, recorder.Close())
	text, err := os.ReadFile(file)
	check.Must(t, err)
	var calls []iam.Call
	for line := range strings.Lines(string(text)) {
		var call iam.Call
		check.Must(t, json.Unmarshal([]byte(line), &call))
		calls = append(calls, call)
	}
	return calls, status
}

func TestCallsAreRecordedAsIAMSeesThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service, operation, body string
		want                     []iam.Call
	}{
		"a read of an item": {
			"dynamodb", "GetItem", `{"TableName":"t-1","Key":{}}`, []iam.Call{{Function: "Runs", Action: "dynamodb:GetItem", Resource: tableARN}},
		},
		"a query of an index": {
			"dynamodb", "Query", `{"TableName":"t-1","IndexName":"due"}`,
			[]iam.Call{{Function: "Runs", Action: "dynamodb:Query", Resource: tableARN + "/index/due"}},
		},
		"a batch of another table": {
			"dynamodb", "BatchGetItem", `{"RequestItems":{"t-2":{}}}`, []iam.Call{{Function: "Runs", Action: "dynamodb:BatchGetItem", Resource: "t-2"}},
		},
		"a transaction": {
			"dynamodb", "TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"t-1"}},{"ConditionCheck":{"TableName":"t-1"}},{"Put":{"TableName":"t-1"}}]}`,
			[]iam.Call{{Function: "Runs", Action: "dynamodb:PutItem", Resource: tableARN}, {Function: "Runs", Action: "dynamodb:ConditionCheckItem", Resource: tableARN}},
		},
		"an item of a partition": {
			"dynamodb", "PutItem", `{"TableName":"t-1","Item":{"pk":{"S":"KEY#0123456789abcdef0123"},"n":{"N":"1"}}}`,
			[]iam.Call{{Function: "Runs", Action: "dynamodb:PutItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "KEY#0"}}},
		},
		"a query of a partition of an index": {
			"dynamodb", "Query",
			`{"TableName":"t-1","IndexName":"due","KeyConditionExpression":"#0 = :0 AND #1 <= :1","ExpressionAttributeValues":{":0":{"S":"LEASES"},":1":{"S":"x"}}}`,
			[]iam.Call{{Function: "Runs", Action: "dynamodb:Query", Resource: tableARN + "/index/due", Context: map[string]string{iam.LeadingKeys: "LEASES"}}},
		},
		"reads of partitions": {
			"dynamodb", "BatchGetItem", `{"RequestItems":{"t-1":{"Keys":[{"pk":{"S":"A"}},{"pk":{"S":"B"}}]}}}`,
			[]iam.Call{
				{Function: "Runs", Action: "dynamodb:BatchGetItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "A"}},
				{Function: "Runs", Action: "dynamodb:BatchGetItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "B"}},
			},
		},
		"writes of partitions": {
			"dynamodb", "BatchWriteItem", `{"RequestItems":{"t-1":[{"PutRequest":{"Item":{"pk":{"S":"A"}}}},{"DeleteRequest":{"Key":{"pk":{"S":"B"}}}}]}}`,
			[]iam.Call{
				{Function: "Runs", Action: "dynamodb:BatchWriteItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "A"}},
				{Function: "Runs", Action: "dynamodb:BatchWriteItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "B"}},
			},
		},
		"a transaction about a partition": {
			"dynamodb", "TransactWriteItems", `{"TransactItems":[{"Delete":{"TableName":"t-1","Key":{"pk":{"S":"A"}}}}]}`,
			[]iam.Call{{Function: "Runs", Action: "dynamodb:DeleteItem", Resource: tableARN, Context: map[string]string{iam.LeadingKeys: "A"}}},
		},
		"a key": {
			"kms", "Decrypt", `{"KeyId":"` + keyARN + `","EncryptionContext":{"slipway":"data key"}}`,
			[]iam.Call{{Function: "Runs", Action: "kms:Decrypt", Resource: keyARN, Context: map[string]string{"kms:EncryptionContext:slipway": "data key"}}},
		},
		"a workflow": {
			"states", "StartExecution", `{"stateMachineArn":"` + runARN + `"}`, []iam.Call{{Function: "Runs", Action: "states:StartExecution", Resource: runARN}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, status := recorded(t, "Runs", c.service, c.operation, c.body)
			if diff := cmp.Diff(c.want, got); diff != "" || status != http.StatusOK {
				t.Errorf("status %d (-want +got):\n%s", status, diff)
			}
		})
	}
}

func TestCallsOfOthersAreNotRecorded(t *testing.T) {
	t.Parallel()
	if got, status := recorded(t, "local", "kms", "Decrypt", `{}`); len(got) > 0 || status != http.StatusOK {
		t.Errorf("got %v, status %d", got, status)
	}
}

// TestUnknownCallsAreRefused checks that a call is refused if the permissions that it needs
// are not known.
func TestUnknownCallsAreRefused(t *testing.T) {
	t.Parallel()
	for service, body := range map[string]string{"sqs": `{"QueueUrl":"q"}`, "kms": `{}`} {
		if got, status := recorded(t, "Runs", service, "Any", body); len(got) > 0 || status != http.StatusNotImplemented {
			t.Errorf("%s: got %v, status %d", service, got, status)
		}
	}
}
