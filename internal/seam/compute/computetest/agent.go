package computetest

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Kinds of agents, as the environment variable AGENT names them.
const (
	// Serve is a healthy agent. With STUBBORN it ignores SIGTERM. With ASK=address it calls
	// that address before it listens, and ends unless the answer is "go on". With CALL=address
	// it keeps a connection to that address as long as it lives.
	Serve = "serve"
	// Exit prints many lines and ends at once.
	Exit = "exit"
	// Deaf never listens.
	Deaf = "deaf"
	// Sick answers its health check with an error.
	Sick = "sick"
)

// Main makes the test binary one of the agents if AGENT names one, and then does not return.
// TestMain calls Main before anything else.
func Main() {
	switch os.Getenv("AGENT") {
	case Serve:
		RunAgent()
	case Exit:
		for i := range 60 {
			fmt.Printf("line %d\n", i)
		}
		fmt.Print("cannot import the graph ", os.Getenv("SECRET"))
		os.Exit(7)
	case Deaf:
		fmt.Println("loading")
		<-time.After(time.Hour) // not select {}: without a C runtime, Go takes that for a deadlock
	case Sick:
		listen(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	}
}

// RunAgent is the agent Serve. It does the action that the body of an invocation names.
func RunAgent() {
	fmt.Println("serving with", os.Getenv("SECRET"))
	if os.Getenv("STUBBORN") != "" {
		signal.Ignore(syscall.SIGTERM)
	}
	if address := os.Getenv("ASK"); address != "" {
		if word, err := bufio.NewReader(call(address)).ReadString('\n'); err != nil || word != "go on\n" {
			os.Exit(1)
		}
	}
	if address := os.Getenv("CALL"); address != "" {
		fmt.Fprintln(call(address), self)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", ping)
	mux.HandleFunc("POST /invocations", invoke)
	listen(mux)
}

// self distinguishes a process from all others, also from processes that have the same id in
// other containers.
var self = fmt.Sprint(os.Getpid(), "-", rand.Text())

// deaf reports whether the agent was told not to answer its health check any more.
var deaf atomic.Bool

// ping answers the health check. With LATER the agent ends, or becomes deaf, a moment after
// its first healthy answer.
func ping(w http.ResponseWriter, _ *http.Request) {
	if deaf.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, `{"status":"Healthy"}`)
	switch os.Getenv("LATER") {
	case "exit":
		// By then the target knows that the agent was healthy, also on a busy machine: a release
		// that ends before is not started again.
		time.AfterFunc(200*time.Millisecond, func() {
			fmt.Println("crashing soon after", os.Getenv("SECRET"))
			os.Exit(9)
		})
	case "deaf":
		deaf.Store(true)
	}
}

// listen serves at the agent's port, or with TAKE=socket at the socket that the agent is
// offered.
func listen(handler http.Handler) {
	if path := os.Getenv("SLIPWAY_SOCKET"); os.Getenv("TAKE") == "socket" && path != "" {
		listener, err := net.Listen("unix", path)
		panicOn(err)
		panic(http.Serve(listener, handler))
	}
	panic(http.ListenAndServe(net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")), handler))
}

func invoke(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+os.Getenv("SLIPWAY_INVOKE_TOKEN") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	panicOn(err)
	word, argument, _ := strings.Cut(string(body), " ")
	switch word {
	case "pid":
		fmt.Fprint(w, self)
	case "environment":
		panicOn(json.NewEncoder(w).Encode(os.Environ()))
	case "header":
		fmt.Fprint(w, r.Header.Get(argument))
	case "reach":
		conn, err := net.Dial("unix", argument)
		if err != nil {
			fmt.Fprint(w, err)
			return
		}
		conn.Close()
		fmt.Fprint(w, "reached")
	case "list":
		names, err := os.ReadDir(argument)
		fmt.Fprint(w, names, err)
	case "relink": // its own socket becomes a link to another socket
		path := os.Getenv("SLIPWAY_SOCKET")
		panicOn(os.Remove(path))
		panicOn(os.Symlink(argument, path))
	case "deafen":
		deaf.Store(true)
	case "crash":
		fmt.Println("crashing as asked")
		os.Exit(9)
	case "hold":
		hold(w, r, argument)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// hold answers "held", and then "done" when the listener at the address says so. If the caller
// leaves before that, hold reports it to the listener.
func hold(w http.ResponseWriter, r *http.Request, address string) {
	fmt.Fprintln(w, "held")
	panicOn(http.NewResponseController(w).Flush())
	conn := call(address)
	released := make(chan string, 1)
	go func() {
		word, _ := bufio.NewReader(conn).ReadString('\n')
		released <- word
	}()
	select {
	case word := <-released:
		if word == "crash\n" {
			os.Exit(9)
		}
		fmt.Fprintln(w, "done")
	case <-r.Context().Done():
		fmt.Fprintln(conn, "the caller left")
	}
	conn.Close()
}

func call(address string) net.Conn {
	conn, err := net.Dial("tcp", address)
	panicOn(err)
	return conn
}

// Mark makes a file in the agent's home and reports whether it was there.
func Mark(name string) bool {
	path := os.Getenv("HOME") + "/" + name
	_, err := os.Stat(path)
	if err == nil {
		return true
	}
	panicOn(os.WriteFile(path, nil, 0o600))
	return false
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}
