package sam_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
	"github.com/slipway-run/slipway/internal/test/emulator/sam"
)

const function = "arn:aws:lambda:us-east-1:000000000000:function:Runner"

// serve answers as start-lambda would.
func serve(t *testing.T, status int, header, body string) *sam.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(r.Body)
		if err != nil || string(payload) != `{"a":1}` || r.Method != http.MethodPost || r.URL.Path != "/2015-03-31/functions/"+function+"/invocations" {
			t.Errorf("got %s %s %s, %v", r.Method, r.URL, payload, err)
		}
		if header != "" {
			w.Header().Set("x-amz-function-error", header)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return &sam.Server{URL: server.URL}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	output, err := serve(t, http.StatusOK, "", `{"next": "Work"}`).Invoke(t.Context(), function, json.RawMessage(`{"a":1}`))
	if err != nil || string(output) != `{"next": "Work"}` {
		t.Errorf("got %s, %v", output, err)
	}
	for name, c := range map[string]struct {
		server *sam.Server
		// kind is the error's type, "" if the failure is not a failure of the function.
		kind, text string
	}{
		"an error of the function": {serve(t, http.StatusOK, "Unhandled", `{"errorType":"AgentUnavailable","errorMessage":"no"}`), "AgentUnavailable", "no"},
		"a timeout":                {serve(t, http.StatusOK, "", ""), lambda.TypeTimeout, "without an answer"},
		"no such function":         {serve(t, http.StatusNotFound, "", `{"Message":"Function not found"}`), "", "404 Not Found: {\"Message\":\"Function not found\"}"},
		"SAM itself":               {serve(t, http.StatusInternalServerError, "", `{"Message":"ServiceException"}`), "", "500 Internal Server Error"},
	} {
		_, err := c.server.Invoke(t.Context(), function, json.RawMessage(`{"a":1}`))
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want ...%s...", name, err, c.text)
		}
		failure, ok := errors.AsType[*lambda.FunctionError](err)
		if ok != (c.kind != "") || (ok && failure.Type != c.kind) {
			t.Errorf("%s: got %v, want the type %q", name, err, c.kind)
		}
	}
}
