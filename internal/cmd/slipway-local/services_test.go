package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestALateServiceIsNotAskedForAClientThatIsGone(t *testing.T) {
	t.Parallel()
	asked := 0
	service := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late(service, time.Hour).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, "/", nil))
	if asked != 0 {
		t.Error("a request came to the service after its client was gone")
	}
	for _, delay := range []time.Duration{0, time.Millisecond} {
		late(service, delay).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
	}
	if asked != 2 {
		t.Errorf("%d requests came to the service, want 2", asked)
	}
}
