package sam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

// Invoke calls a function of start-lambda, given by its name or ARN, and returns its answer. A
// *lambda.FunctionError is an error of the function; any other error happened before the
// function was called.
func (s *Server) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	output, err := s.invoke(ctx, function, payload)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	return output, nil
}

func (s *Server) invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	address := s.URL + "/2015-03-31/functions/" + url.PathEscape(function) + "/invocations"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("sam local start-lambda answers %s: %s", response.Status, body)
	case response.Header.Get("X-Amz-Function-Error") != "":
		failure := &lambda.FunctionError{Payload: body}
		return nil, errors.Join(json.Unmarshal(body, failure), failure)
	case len(body) == 0:
		// SAM ends the container of a function that takes too long, and reports no error.
		return nil, &lambda.FunctionError{Type: lambda.TypeTimeout, Message: "the function ended without an answer"}
	}
	return body, nil
}
