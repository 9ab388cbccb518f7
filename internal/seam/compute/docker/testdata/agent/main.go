// Command agent is the agents that the tests of package docker run in containers: the agents
// of package computetest and further ones that only a container can run.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
)

func main() {
	switch kind := os.Getenv("AGENT"); kind {
	case "stranger": // listens, but does not know the contract
		check(http.ListenAndServe(":8080", http.NotFoundHandler()))
	case "hog": // wants more memory than it may have
		var all [][]byte
		for {
			piece := make([]byte, 16<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			all = append(all, piece)
			fmt.Println(len(all)*16, "MB")
		}
	case "write": // an init container: leaves a file and ends
		check(os.WriteFile(os.Getenv("FILE"), []byte(os.Getenv("TEXT")), 0o644))
	case "fail": // an init container that fails
		fmt.Println("there is nothing to migrate")
		os.Exit(3)
	case "beside":
		// A sidecar serves the content of a file at a port of the agent's own loopback interface.
		check(http.ListenAndServe("127.0.0.1:9090", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			text, err := os.ReadFile(os.Getenv("FILE"))
			fmt.Fprintf(w, "%s %v", text, err)
		})))
	case "crash": // a sidecar that ends at once, and counts its starts in a file
		before, err := os.ReadFile(os.Getenv("FILE"))
		if !errors.Is(err, fs.ErrNotExist) {
			check(err)
		}
		check(os.WriteFile(os.Getenv("FILE"), append(before, 'x'), 0o644))
		fmt.Println("start", len(before)+1)
		os.Exit(1)
	case "fetch":
		// This agent is healthy when its sidecar answers, and prints the sidecar's answer.
		http.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
			answer, err := http.Get("http://127.0.0.1:9090")
			if err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			said, err := io.ReadAll(answer.Body)
			fmt.Printf("the sidecar says %s %v\n", said, err)
		})
		check(http.ListenAndServe(":8080", nil))
	}
	computetest.Main()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
