package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute/process"
	"github.com/slipway-run/slipway/internal/revisionlog"
)

// The test binary is also the agents that the tests run; AGENT says which.
func TestMain(m *testing.M) {
	switch agent := os.Getenv("AGENT"); agent {
	case "":
		// The server's environment has something that no agent may see.
		if err := os.Setenv("PLANTED_SERVER_SECRET", "planted-server-secret"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/child.runStartThread"))
	case "serve":
		serve()
	case "exit":
		for i := range 60 {
			fmt.Printf("line %d\n", i)
		}
		fmt.Print("cannot import the graph ", os.Getenv("SECRET"))
		os.Exit(7)
	case "deaf":
		fmt.Println("loading")
		<-time.After(time.Hour) // not select {}: without a C runtime that is taken for a deadlock
	case "sick":
		serveSick()
	case "server":
		serveTarget()
	case "rival":
		loseThePort()
	default:
		panic("unknown agent " + agent)
	}
}

// serve is a healthy agent. It answers its environment, holds an invocation for as long as it is told, and crashes when it is asked to.
func serve() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /environment", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(os.Environ()); err != nil {
			panic(err)
		}
	})
	mux.HandleFunc("GET /pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("POST /crash", func(http.ResponseWriter, *http.Request) {
		fmt.Println("crashing as asked")
		os.Exit(9)
	})
	fmt.Println("serving with", os.Getenv("SECRET"))
	if os.Getenv("STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if os.Getenv("CRASH_ONCE") != "" && !mark("crashed") {
		os.Exit(1)
	}
	panic(http.ListenAndServe(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")), mux))
}

// mark makes a file in the agent's home and reports whether it was there.
func mark(name string) bool {
	_, err := os.Stat(os.Getenv("HOME") + "/" + name)
	if err == nil {
		return true
	}
	if err := os.WriteFile(os.Getenv("HOME")+"/"+name, nil, 0o600); err != nil {
		panic(err)
	}
	return false
}

// serveSick answers GET /ping with an error.
func serveSick() {
	panic(http.ListenAndServe(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })))
}

// loseThePort is an agent that finds its port taken: the first time only, or always.
func loseThePort() {
	if os.Getenv("ALWAYS") == "" && mark("lost") {
		serve()
	}
	fmt.Println("listen tcp: bind: address already in use")
	os.Exit(1)
}

// serveTarget is a server with one healthy release that says where the release answers, and lives until it is killed.
func serveTarget() {
	dir := os.Getenv("DIR")
	logs, err := revisionlog.Open(filepath.Join(dir, "logs"), clock.System)
	check(err)
	target, err := process.New(process.Config{Dir: filepath.Join(dir, "agents"), Logs: logs, Log: slog.Default()})
	check(err)
	r := newRelease("serve", "STUBBORN=1")
	// A shell in between: the agent is a grandchild, which no kernel ends with the server.
	r.Artifact.Start = []string{"sh", "-c", program() + "; true"}
	check(target.Apply(context.Background(), r))
	endpoint, _, err := target.Acquire(context.Background(), r.Ref)
	check(err)
	fmt.Println(endpoint.URL)
	<-time.After(time.Hour)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func program() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
