package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Call is one permission that a request needs.
type Call struct {
	// Function is the logical id of the function that made the request.
	Function string `json:"function"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	// Context holds the condition keys of the request.
	Context map[string]string `json:"context,omitempty"`
}

// Config defines the calls to note, and the file for them.
type Config struct {
	// File gets one line with a JSON object for each call. Several recorders may share it.
	File string
	// Functions are the names of the functions, which are the ids of their access keys.
	// Requests of other callers are not noted.
	Functions []string
	// Tables maps the local names of tables to the ARNs by which IAM knows them.
	Tables map[string]string
	// Log gets the errors for calls that cannot be noted.
	Log *slog.Logger
}

// Recorder notes calls, each call once.
type Recorder struct {
	config Config
	file   *os.File

	mu   sync.Mutex
	seen map[string]bool
}

// Open opens a recorder. The caller closes it.
func Open(config Config) (*Recorder, error) {
	file, err := os.OpenFile(config.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("record calls: %w", err)
	}
	return &Recorder{config: config, file: file, seen: map[string]bool{}}, nil
}

// Close closes the file.
func (r *Recorder) Close() error { return r.file.Close() }

// Before returns a service whose calls are noted before they are answered. A call that cannot
// be noted is not answered either, because a missing permission would not be found.
func (r *Recorder) Before(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.note(request); err != nil {
			r.config.Log.ErrorContext(request.Context(), "a call cannot be recorded", "target", request.Header.Get(targetHeader), "error", err)
			http.Error(w, err.Error(), http.StatusNotImplemented)
			return
		}
		service.ServeHTTP(w, request)
	})
}

const targetHeader = "X-Amz-Target"

// scope matches the signer of a request, and the service of the signature.
var scope = regexp.MustCompile(`Credential=([^/]+)/[0-9]+/[^/]+/([^/]+)/aws4_request`)

func (r *Recorder) note(request *http.Request) error {
	signed := scope.FindStringSubmatch(request.Header.Get("Authorization"))
	if signed == nil || !slices.Contains(r.config.Functions, signed[1]) {
		return nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(request.Header.Get(targetHeader), ".")
	calls, err := r.read(signed[2], operation, body)
	if err != nil {
		return err
	}
	for _, call := range calls {
		call.Function = signed[1]
		if err := r.write(call); err != nil {
			return err
		}
	}
	return nil
}

// write writes a call as a line, unless it was written before.
func (r *Recorder) write(call Call) error {
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[string(line)] {
		return nil
	}
	r.seen[string(line)] = true
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// read returns the permissions that a request needs.
func (r *Recorder) read(service, operation string, body []byte) ([]Call, error) {
	var named resources
	if err := json.Unmarshal(body, &named); err != nil {
		return nil, fmt.Errorf("%s:%s: %w", service, operation, err)
	}
	var calls []Call
	switch service {
	case "dynamodb":
		calls = r.readTable(named)
	case "kms":
		calls = []Call{{Resource: named.KeyID, Context: encryptionContext(named.EncryptionContext)}}
	case "states", "secretsmanager":
		calls = []Call{{Resource: named.ExecutionARN + named.StateMachineARN + named.SecretID}}
	}
	for i := range calls {
		if calls[i].Action == "" {
			calls[i].Action = operation
		}
		calls[i].Action = service + ":" + calls[i].Action
		if calls[i].Resource == "" {
			calls = nil
			break
		}
	}
	if len(calls) == 0 {
		return nil, errors.New("nothing is known of the permissions for " + service + ":" + operation)
	}
	return calls, nil
}

// resources are the members of requests that name the resources of a request.
type resources struct {
	TableName, IndexName string
	place
	// KeyConditionExpression and ExpressionAttributeValues select the partition of a query.
	KeyConditionExpression    string
	ExpressionAttributeValues map[string]value
	// TransactItems and RequestItems are the members of requests about several items.
	TransactItems []map[string]struct {
		TableName string
		place
	}
	RequestItems map[string]json.RawMessage

	KeyID             string `json:"KeyId"`
	EncryptionContext map[string]string

	StateMachineARN string `json:"stateMachineArn"`
	ExecutionARN    string `json:"executionArn"`
	SecretID        string `json:"SecretId"`
}

// transactional are the actions that the members of a transaction need.
var transactional = map[string]string{
	"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem", "Get": "GetItem",
}

func (r *Recorder) readTable(named resources) []Call {
	var calls []Call
	partition := named.partition()
	if selected := condition.FindStringSubmatch(named.KeyConditionExpression); selected != nil {
		partition = named.ExpressionAttributeValues[selected[1]].S
	}
	switch {
	case named.IndexName != "":
		calls = append(calls, Call{Resource: r.table(named.TableName) + "/index/" + named.IndexName, Context: leading(partition)})
	case named.TableName != "":
		calls = append(calls, Call{Resource: r.table(named.TableName), Context: leading(partition)})
	}
	for table, batch := range named.RequestItems {
		for _, partition := range partitions(batch) {
			calls = append(calls, Call{Resource: r.table(table), Context: leading(partition)})
		}
	}
	for _, item := range named.TransactItems {
		for kind, of := range item {
			calls = append(calls, Call{Action: transactional[kind], Resource: r.table(of.TableName), Context: leading(of.partition())})
		}
	}
	return calls
}

// table returns the ARN of a table. For a table that is not configured it returns the table's
// name, which no policy contains.
func (r *Recorder) table(name string) string {
	if arn, ok := r.config.Tables[name]; ok {
		return arn
	}
	return name
}

func encryptionContext(of map[string]string) map[string]string {
	keys := make(map[string]string, len(of))
	for name, value := range of {
		keys["kms:EncryptionContext:"+name] = value
	}
	return keys
}
