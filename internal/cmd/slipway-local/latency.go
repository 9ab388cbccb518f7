package main

import (
	"net/http"
	"time"
)

// late passes each request on after a delay, as if the service were not on this machine. A request
// whose client gives up meanwhile does not come to the service.
func late(service http.Handler, delay time.Duration) http.Handler {
	if delay == 0 {
		return service
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
			service.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
