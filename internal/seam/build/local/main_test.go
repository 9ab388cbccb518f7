package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

// The test binary also serves as the programs that the tests run. MODE names the program.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("MODE"); mode {
	case "":
		dir := plant()
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"),
			goleak.Cleanup(func(code int) {
				panicOn(os.RemoveAll(dir))
				os.Exit(code)
			}))
	case "connect":
		panicOn(outbound.Connect(context.Background(), os.Args[1], os.Args[2], os.Stdin, os.Stdout))
	case "call":
		call()
	case "server":
		serve()
	case "hoard":
		for range 200 {
			packets, err := net.ListenPacket("udp", "127.0.0.1:0")
			panicOn(err)
			defer packets.Close()
		}
		fmt.Println("hoarding")
		<-time.After(time.Hour)
	case "hog":
		memory := make([]byte, 512<<20)
		for i := 0; i < len(memory); i += os.Getpagesize() {
			memory[i] = 1
		}
	default:
		panic("unknown mode " + mode)
	}
}

// gitCalls is the file in a build's directory with the command lines of every git that the
// builder ran for the build. sshCalls is the file with the agent's socket and the command
// lines of every ssh.
const gitCalls, sshCalls = "git-calls", "ssh-calls"

// plant puts things into the server's environment that builds must not see: a variable, a git
// configuration that makes git useless, and an askpass program. In front of the real git it
// puts a git that notes its command line. In front of the real node it puts a node that runs
// the script as-node of its directory in place of the real node, if there is such a script.
func plant() (dir string) {
	dir, err := os.MkdirTemp("", "builder-test-")
	panicOn(err)
	panicOn(os.WriteFile(filepath.Join(dir, ".gitconfig"), []byte("[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = file://\n\tinsteadOf = http://\n"), 0o600))
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$*\" >>\"$TMPDIR/../%s\"\nexec %q \"$@\"\n", gitCalls, buildtest.Git)
	panicOn(os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755))
	ssh, err := exec.LookPath("ssh")
	panicOn(err)
	script = fmt.Sprintf("#!/bin/sh\nprintf '[%%s] %%s\\n' \"$SSH_AUTH_SOCK\" \"$*\" >>\"$TMPDIR/../%s\"\nexec %q \"$@\"\n", sshCalls, ssh)
	panicOn(os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755))
	if node, err := exec.LookPath("node"); err == nil {
		script := fmt.Sprintf("#!/bin/sh\n[ -e as-node ] && exec sh as-node \"$@\"\nexec %q \"$@\"\n", node)
		panicOn(os.WriteFile(filepath.Join(dir, "node"), []byte(script), 0o700))
	}
	for name, value := range map[string]string{
		"HOME": dir, "PATH": dir + ":" + os.Getenv("PATH"), "PLANTED_SERVER_SECRET": "planted-server-secret",
		"GIT_ASKPASS": "/bin/false", "SSH_AUTH_SOCK": filepath.Join(dir, "agent.sock"), "GOFLAGS": "-mod=mod",
	} {
		panicOn(os.Setenv(name, value))
	}
	return dir
}

// called is the output of a program that has called.
const called = "called the test"

// call connects to the test and lives until it is killed: the test sees its death as the end of the
// connection.
func call() {
	conn, err := net.Dial("tcp", os.Getenv("ADDR"))
	panicOn(err)
	fmt.Fprintln(conn, "here")
	fmt.Println(called)
	<-time.After(time.Hour) // not select {}: without a C runtime Go takes that for a deadlock
}

// serve runs a server that builds the Spec in SPEC, until the server is killed.
func serve() {
	dir := os.Getenv("DIR")
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	panicOn(err)
	b, err := local.New(local.Config{Dir: filepath.Join(dir, "builds"), Logs: logs, Log: slog.Default(), LocalRepositories: true})
	panicOn(err)
	var spec build.Spec
	panicOn(json.Unmarshal([]byte(os.Getenv("SPEC")), &spec))
	panicOn(b.Start(context.Background(), spec))
	<-time.After(time.Hour)
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

func program() string {
	path, err := os.Executable()
	panicOn(err)
	return path
}

// switchboard takes the calls of programs under test.
type switchboard struct{ *net.TCPListener }

func newSwitchboard(t *testing.T) switchboard {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, listener.Close()) })
	return switchboard{listener.(*net.TCPListener)}
}

// caller returns a shell command that calls and lives until it is killed.
func (s switchboard) caller() string {
	return fmt.Sprintf("MODE=call ADDR=%s %s", s.Addr(), program())
}

// accept waits for a call. The function that it returns waits for the death of the caller.
func (s switchboard) accept(t *testing.T) (wantDeath func()) {
	t.Helper()
	check.Must(t, s.SetDeadline(deadline(t)))
	conn, err := s.Accept()
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, conn.Close()) })
	check.Must(t, conn.SetReadDeadline(deadline(t)))
	r := bufio.NewReader(conn)
	if got, err := r.ReadString('\n'); err != nil || got != "here\n" {
		t.Fatalf("program says %q, %v", got, err)
	}
	return func() {
		t.Helper()
		check.Must(t, conn.SetReadDeadline(deadline(t)))
		if got, err := r.ReadString('\n'); err == nil || os.IsTimeout(err) {
			t.Fatalf("program is alive and says %q, %v", got, err)
		}
	}
}
