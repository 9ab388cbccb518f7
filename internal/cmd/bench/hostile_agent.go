package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// order is the input of a run of the hostile agent: the number of events, and their size in
// bytes.
type order struct {
	Events int `json:"events"`
	Bytes  int `json:"bytes"`
}

// serveHostileAgent implements only the part of the container contract that is needed to send
// events.
func serveHostileAgent() error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"Healthy","time_of_last_update":%d}`, time.Now().Unix())
	})
	mux.HandleFunc("POST /invocations", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Operation string
			Config    struct{ Configurable order }
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if in.Operation != "" && in.Operation != "run" {
			http.Error(w, `{"error":"BadRequest","message":"unknown operation"}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		piece := bytes.Repeat([]byte("x"), 64<<10)
		for range in.Config.Configurable.Events {
			fmt.Fprint(w, "event: custom\ndata: \"")
			for left := in.Config.Configurable.Bytes; left > 0; left -= len(piece) {
				if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
					return
				}
			}
			fmt.Fprint(w, "\"\n\n")
		}
	})
	host := os.Getenv("HOST")
	agent := &http.Server{Addr: strings.Trim(host, "[]") + ":" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: time.Minute}
	return agent.ListenAndServe()
}
