// Command hostile is an agent that attacks the server and the other agents of its machine. A
// run names the attacks in its configuration, and fails with a list of the forbidden actions
// that succeeded.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	floodEvents   = 2000
	floodLines    = 20_000
	diskBytes     = 32 << 20
	sleepers      = 20
	connections   = 200
	serversSecret = "secret.key"
)

type invocation struct {
	Operation string `json:"operation"`
	ServerURL string `json:"server_url"`
	Config    struct {
		Configurable struct {
			Attack string `json:"attack"`
			// Marker is the argument of processes that try to outlive the agent.
			Marker string `json:"marker"`
		} `json:"configurable"`
	} `json:"config"`
}

func main() {
	http.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"Healthy"}`) })
	http.HandleFunc("POST /invocations", invoke)
	server := &http.Server{Addr: net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")), ReadHeaderTimeout: time.Minute}
	fmt.Println(server.ListenAndServe())
	os.Exit(1)
}

func invoke(w http.ResponseWriter, r *http.Request) {
	var in invocation
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || (in.Operation != "" && in.Operation != "run") {
		http.Error(w, `{"error":"BadRequest","message":"no"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	did := ""
	switch asked := in.Config.Configurable; asked.Attack {
	case "flood":
		flood(w)
	case "crash":
		fmt.Fprint(w, "event: custom\ndata: 1\n\n")
		os.Exit(3)
	case "garble":
		fmt.Fprint(w, "event: values\ndata: {\"messages\": [\n\n")
		return
	case "kill":
		did = kill()
	case "fork":
		fork(asked.Marker)
	case "fill":
		did = fill()
	case "connect":
		connect(in.ServerURL)
	}
	message, err := json.Marshal(map[string]string{"error": "Hostile", "message": did})
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, "event: error\ndata: %s\n\n", message)
}

// flood sends and prints as much as it can.
func flood(w http.ResponseWriter) {
	text := strings.Repeat("x", 1000)
	for range floodEvents {
		fmt.Fprintf(w, "event: custom\ndata: %q\n\n", text)
	}
	for range floodLines {
		fmt.Println(text[:100])
	}
}

// data returns the server's directory, which contains this program's directory.
func data() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "data" {
			return dir
		}
	}
	return ""
}

// kill tries to end, slow and read the server and the processes that it has started, and
// returns the successful actions.
func kill() (did string) {
	server := 0
	parents := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err.Error()
	}
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(file))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(file + "/stat")
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
		arguments, err := os.ReadFile(file + "/cmdline")
		if err == nil && bytes.Contains(arguments, []byte("\x00--data\x00"+data()+"\x00")) {
			server = pid
		}
	}
	if server == 0 {
		return "" // it has just ended
	}
	for pid, parent := range parents {
		if pid == os.Getpid() || (pid != server && parent != server) || tenants(pid, server) {
			continue
		}
		if syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) == nil {
			did += fmt.Sprintf("slowed %d; ", pid)
		}
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil {
			did += fmt.Sprintf("read %d bytes of the environment of %d; ", len(text), pid)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			did += fmt.Sprintf("killed %d; ", pid)
		}
	}
	if _, err := os.ReadFile(filepath.Join(data(), serversSecret)); err == nil {
		did += "read the server's key; "
	}
	return did
}

// tenants reports whether a process belongs to this program's own tenant, which has another
// user than the server.
func tenants(pid, server int) bool {
	owner := func(pid int) int {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			return -1 // it has ended
		}
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	return os.Getuid() != owner(server) && os.Getuid() == owner(pid)
}

// forking limits the processes that one agent leaves behind.
var forking sync.Once

// fork leaves processes behind that belong to no group or environment of the server.
func fork(marker string) {
	forking.Do(func() {
		for range sleepers {
			sleeper := exec.Command("sleep", marker)
			sleeper.Env, sleeper.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
			if err := sleeper.Start(); err != nil {
				fmt.Println(err)
			}
		}
	})
}

// fill writes to its own directory, and to the server's directory.
func fill() (did string) {
	text := bytes.Repeat([]byte("x"), diskBytes)
	if err := os.WriteFile(filepath.Join(os.Getenv("TMPDIR"), "filler"), text, 0o600); err != nil {
		fmt.Println(err)
	}
	for _, file := range []string{filepath.Join(data(), "filler"), "/etc/filler"} {
		if err := os.WriteFile(file, text[:1], 0o600); err == nil {
			did += "wrote " + file + "; "
		}
	}
	return did
}

// held holds connections whose requests are not sent completely.
var held struct {
	sync.Mutex
	all []net.Conn
}

// connect opens connections to the server and holds them, and closes the previous connections.
func connect(server string) {
	address, err := url.Parse(server)
	if err != nil {
		return
	}
	held.Lock()
	defer held.Unlock()
	for _, one := range held.all {
		one.Close()
	}
	held.all = nil
	for range connections {
		one, err := net.DialTimeout("tcp", address.Host, time.Second)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Fprint(one, "POST /v2/deployments HTTP/1.1\r\nHost: x\r\n")
		held.all = append(held.all, one)
	}
}
