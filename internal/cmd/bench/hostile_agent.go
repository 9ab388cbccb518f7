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
// bytes. With Zeros the events are the values of a state with a list of zeros, otherwise a text.
type order struct {
	Events int  `json:"events"`
	Bytes  int  `json:"bytes"`
	Zeros  bool `json:"zeros"`
}

// event returns the beginning of an event, the text that fills it, and its end.
func (o order) event() (begin string, filling []byte, end string) {
	if o.Zeros {
		return "event: values\ndata: {\"a\":[0", bytes.Repeat([]byte(",0"), 32<<10), "]}\n\n"
	}
	return "event: custom\ndata: \"", bytes.Repeat([]byte("x"), 64<<10), "\"\n\n"
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
		begin, piece, end := in.Config.Configurable.event()
		for range in.Config.Configurable.Events {
			fmt.Fprint(w, begin)
			for left := in.Config.Configurable.Bytes &^ 1; left > 0; left -= len(piece) {
				if _, err := w.Write(piece[:min(left, len(piece))]); err != nil {
					return
				}
			}
			fmt.Fprint(w, end)
		}
	})
	host := os.Getenv("HOST")
	agent := &http.Server{Addr: strings.Trim(host, "[]") + ":" + os.Getenv("PORT"), Handler: mux, ReadHeaderTimeout: time.Minute}
	return agent.ListenAndServe()
}
