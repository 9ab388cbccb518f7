package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

// sayAgent is an agent whose answer is the file words beside it, which must exist when the
// agent starts. If it is asked to wait, it writes the answer and continues it until it is
// interrupted; if it is asked to fail, it fails. It prints the id of each run. Its output and its
// failure contain text that would move the cursor. If it is told to ask, it asks two questions, and
// says the answer to the second one. If it is told to say nothing, its runs end at once.
func sayAgent() {
	words, err := os.ReadFile("words")
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted-words:", err)
		os.Exit(3)
	}
	said := strings.TrimSpace(string(words))
	http.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status": "Healthy"}`) })
	http.HandleFunc("POST /invocations", func(w http.ResponseWriter, r *http.Request) {
		if err := say(w, r, said); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	fmt.Println("says", said)
	fmt.Println("\x1b[2Jplanted-escape")
	fmt.Fprintln(os.Stderr, http.ListenAndServe(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")), nil))
	os.Exit(1)
}

// say answers an invocation.
func say(w http.ResponseWriter, r *http.Request, said string) error {
	var in struct {
		RunID   string `json:"run_id"`
		Command struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"command"`
		State struct {
			Values struct {
				Messages []struct {
					Content string `json:"content"`
				} `json:"messages"`
			} `json:"values"`
		} `json:"state"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	asked := in.State.Values.Messages
	fmt.Println("INFO answers run", in.RunID)
	w.Header().Set("Content-Type", "text/event-stream")
	const question = `{"id": "q2", "value": {"action_requests": [{"name": "send", "args": {"to": "Ada"}}]}}`
	switch answer := string(in.Command.Resume); {
	case strings.Contains(answer, "q1"):
		fmt.Fprintf(w, "event: interrupt\ndata: [%s]\n\n", question)
		return nil
	case answer != "":
		fmt.Fprintf(w, "event: updates\ndata: {\"say\": {\"messages\": [{\"type\": \"ai\", \"id\": \"a-%s\", \"content\": %q}]}}\n\n", in.RunID, "I got "+answer)
		return nil
	case len(asked) > 0 && strings.Contains(asked[len(asked)-1].Content, "ask"):
		fmt.Fprintf(w, "event: interrupt\ndata: [{\"id\": \"q1\", \"value\": \"May I\\u001b[2J?\"}, %s]\n\n", question)
		return nil
	}
	if len(asked) > 0 && strings.Contains(asked[len(asked)-1].Content, "say nothing") {
		return nil
	}
	for _, word := range strings.SplitAfter(said, " ") {
		fmt.Fprintf(w, "event: messages\ndata: [{\"type\": \"AIMessageChunk\", \"id\": \"a-%s\", \"content\": %q}, {}]\n\n", in.RunID, word)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return err
		}
	}
	if len(asked) > 0 && strings.Contains(asked[len(asked)-1].Content, "fail") {
		fmt.Println("ERROR fails in run", in.RunID)
		fmt.Fprint(w, "event: error\ndata: {\"error\": \"Planted\", \"message\": \"first\\n::add-mask::\\u001b[2Jsecond\"}\n\n")
		return nil
	}
	if len(asked) > 0 && strings.Contains(asked[len(asked)-1].Content, "wait") {
		<-r.Context().Done()
		return nil
	}
	fmt.Fprintf(w, "event: updates\ndata: {\"say\": {\"messages\": [{\"type\": \"ai\", \"id\": \"a-%s\", \"content\": %q}]}}\n\n", in.RunID, said)
	return nil
}
