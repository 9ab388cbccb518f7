package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// ServeHTTP implements the service's own interface, as far as tools and state machines call
// it: POST /2015-03-31/functions/{name}/invocations.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", p.invoke)
	mux.ServeHTTP(w, r)
}

func (p *Platform) invoke(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxRequest+1))
	if err != nil {
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if len(payload) <= MaxRequest && !json.Valid(payload) {
		reject(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}
	if r.Header.Get("X-Amz-Invocation-Type") == "Event" {
		p.invokeLater(w, r, name, payload)
		return
	}
	result, err := p.Invoke(r.Context(), name, payload)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Amz-Executed-Version", "$LATEST")
	if failure, ok := errors.AsType[*FunctionError](err); ok {
		header.Set("X-Amz-Function-Error", "Unhandled")
		w.Write(failure.Payload)
		return
	}
	if err != nil {
		rejectWith(w, name, err)
		return
	}
	w.Write(result) //nolint:gosec // it is JSON, and says so
}

// invokeLater accepts an asynchronous call.
func (p *Platform) invokeLater(w http.ResponseWriter, r *http.Request, name string, payload []byte) {
	if _, err := p.pool(name); err != nil {
		rejectWith(w, name, err)
		return
	}
	ctx := context.WithoutCancel(r.Context())
	go func() {
		if err := p.invokeUntilAccepted(ctx, name, payload); err != nil {
			p.config.Log.Warn("asynchronous call failed", "function", name, "error", err)
		}
	}()
	w.WriteHeader(http.StatusAccepted)
}

func rejectWith(w http.ResponseWriter, name string, err error) {
	switch {
	case errors.Is(err, ErrUnknownFunction):
		reject(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name)
	case errors.Is(err, ErrTooLarge):
		reject(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", err.Error())
	case errors.Is(err, ErrThrottled):
		rejectThrottled(w, err)
	default:
		reject(w, http.StatusInternalServerError, "ServiceException", err.Error())
	}
}

func rejectThrottled(w http.ResponseWriter, err error) {
	why := "ReservedFunctionConcurrentInvocationLimitExceeded"
	if errors.Is(err, errAccountFull) {
		why = "ConcurrentInvocationLimitExceeded"
	}
	rejectAs(w, http.StatusTooManyRequests, "TooManyRequestsException", refused{Reason: why, Type: "User", Message: "Rate Exceeded."})
}

func reject(w http.ResponseWriter, status int, name, message string) {
	rejectAs(w, status, name, refused{Type: "User", Message: message})
}

// refused is the body of the answer to a call that no function gets.
type refused struct {
	Reason  string `json:",omitempty"`
	Type    string
	Message string `json:"message"`
}

func rejectAs(w http.ResponseWriter, status int, name string, body refused) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", name)
	w.WriteHeader(status)
	text, err := json.Marshal(body)
	if err != nil {
		panic("lambda: encode a refusal: " + err.Error()) // the refusal has only texts
	}
	w.Write(text)
}
