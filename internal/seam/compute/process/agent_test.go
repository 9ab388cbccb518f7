package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

// The test binary is also the agents that the tests run; AGENT names the kind. The kinds that
// are not in computetest are here.
func TestMain(m *testing.M) {
	computetest.Main()
	switch agent := os.Getenv("AGENT"); agent {
	case "":
		// The server's environment has a variable that no agent may see.
		if err := os.Setenv("PLANTED_SERVER_SECRET", "planted-server-secret"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
	case "server":
		serveTarget()
	case "rival":
		loseThePort()
	case "first-only":
		if computetest.Mark("started") {
			<-time.After(time.Hour)
		}
		computetest.RunAgent()
	case "second-fails":
		if computetest.Mark("started") && !computetest.Mark("failed") {
			fmt.Println("no model answers", os.Getenv("SECRET"))
			os.Exit(3)
		}
		computetest.RunAgent()
	case "hog":
		hog()
	case "filler":
		fill()
	case "hoarder":
		hoard()
	case "mute":
		speakNoHTTP()
	case "stranger":
		panicOn(http.ListenAndServe(listenAddress(), http.NotFoundHandler()))
	default:
		panic("unknown agent " + agent)
	}
}

// loseThePort is an agent that finds its port taken, either the first time only or always.
func loseThePort() {
	if os.Getenv("ALWAYS") == "" && computetest.Mark("lost") {
		computetest.RunAgent()
	}
	fmt.Println("listen tcp: bind: address already in use")
	os.Exit(1)
}

func listenAddress() string { return net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")) }

// speakNoHTTP is an agent that listens and answers, but not in HTTP.
func speakNoHTTP() {
	listener, err := net.Listen("tcp", listenAddress())
	panicOn(err)
	for {
		conn, err := listener.Accept()
		panicOn(err)
		fmt.Fprintln(conn, "220 ready")
		panicOn(conn.Close())
	}
}

// hog is an agent that uses 256 MB of memory: before it listens or, with LATER=hog, when it is
// invoked.
func hog() {
	if os.Getenv("LATER") == "" {
		use256MB()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /invocations", func(w http.ResponseWriter, _ *http.Request) {
		use256MB()
		fmt.Fprint(w, "done")
	})
	panicOn(http.ListenAndServe(listenAddress(), mux))
}

// fill is an agent that writes 64 MB of files into a directory, when it is invoked, and keeps
// them until it is stopped. The directory is the value of the variable that WHERE names. With
// HOW=removed it removes the files, and keeps them open; with HOW=empty it writes many empty files.
func fill() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /invocations", func(http.ResponseWriter, *http.Request) {
		dir := os.Getenv(os.Getenv("WHERE"))
		for i := 0; os.Getenv("HOW") == "empty" && i < 20_000; i++ {
			panicOn(os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
			if i%50 == 0 { // it takes longer than the time between two looks at the disk
				<-time.After(10 * time.Millisecond)
			}
		}
		for i := 0; os.Getenv("HOW") != "empty" && i < 64; i++ {
			file, err := os.CreateTemp(dir, "filler")
			panicOn(err)
			_, err = file.Write(make([]byte, 1<<20))
			panicOn(err)
			if os.Getenv("HOW") == "removed" {
				panicOn(os.Remove(file.Name()))
				defer file.Close()
				continue
			}
			panicOn(file.Close())
		}
		<-time.After(time.Hour)
	})
	panicOn(http.ListenAndServe(listenAddress(), mux))
}

// hoard is an agent that takes 200 ports when it is invoked, and keeps them until it is stopped.
func hoard() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /invocations", func(http.ResponseWriter, *http.Request) {
		for range 100 {
			stream, err := net.Listen("tcp", "127.0.0.1:0")
			panicOn(err)
			defer stream.Close()
			packets, err := net.ListenPacket("udp", "127.0.0.1:0")
			panicOn(err)
			defer packets.Close()
		}
		<-time.After(time.Hour)
	})
	panicOn(http.ListenAndServe(listenAddress(), mux))
}

func use256MB() {
	fmt.Println("loading 256 MB")
	memory := make([]byte, 256<<20)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
}

// serveTarget is a server with one healthy release. It prints where the release answers, and
// lives until it is killed.
func serveTarget() {
	dir := os.Getenv("DIR")
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	panicOn(err)
	target, err := process.New(process.Config{Dir: filepath.Join(dir, "agents"), Logs: logs, Log: slog.Default()})
	panicOn(err)
	r := computetest.NewRelease(computetest.Serve, "STUBBORN=1")
	// There is a shell in between: the agent is a grandchild, and no kernel ends a grandchild
	// with the server.
	r.Artifact.Start = []string{"sh", "-c", program() + "; true"}
	panicOn(target.Apply(context.Background(), r))
	endpoint, _, err := target.Acquire(context.Background(), r.Ref)
	panicOn(err)
	panicOn(json.NewEncoder(os.Stdout).Encode(endpoint))
	<-time.After(time.Hour)
}

func panicOn(err error) {
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
