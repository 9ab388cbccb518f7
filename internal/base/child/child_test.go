package child_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// The test binary is also the programs that the tests run; MODE names the program.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("MODE"); mode {
	case "":
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
	case "call":
		call()
	case "call-and-finish":
		callAndFinish()
	case "server":
		serve()
	case "connect":
		connect()
	case "listen":
		listen()
	case "hog":
		hog()
	case "print":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		os.Exit(3)
	default:
		panic("unknown mode " + mode)
	}
}

// call connects to the test and lives until it is killed: the test sees its death as the end of the
// connection.
func call() {
	conn := dial()
	fmt.Fprintln(conn, "here")
	<-time.After(time.Hour) // not select {}: without a C runtime, Go takes that for a deadlock
}

// callAndFinish takes its time when it is asked to end: it waits for a line from the test.
func callAndFinish() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	conn := dial()
	fmt.Fprintln(conn, "here")
	<-term
	fmt.Fprintln(conn, "finishing")
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		os.Exit(1)
	}
	fmt.Fprintln(conn, "finished")
}

// hog uses 256 MB of memory.
func hog() {
	memory := make([]byte, 256<<20)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
}

// serve is a server whose child runs a script.
func serve() {
	registry, err := child.Open(os.Getenv("DIR"))
	if err != nil {
		panic(err)
	}
	_, err = registry.Start(child.Command{
		Args: []string{"sh", "-c", os.Getenv("SCRIPT")},
		Env:  []string{"PATH=" + os.Getenv("PATH"), "MODE=call", "ADDR=" + os.Getenv("ADDR"), "PROGRAM=" + program()},
	})
	if err != nil {
		panic(err)
	}
	<-time.After(time.Hour)
}

func dial() net.Conn {
	conn, err := net.Dial("tcp", os.Getenv("ADDR"))
	if err != nil {
		panic(err)
	}
	return conn
}

func program() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// line is a connection from a program under test.
type line struct {
	net.Conn
	r *bufio.Reader
}

func (l line) wantLine(t *testing.T, want string) {
	t.Helper()
	got, err := l.r.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("program says %q, %v; want %q", got, err, want)
	}
}

// wantDeath waits for the end of the program.
func (l line) wantDeath(t *testing.T) {
	t.Helper()
	if got, err := l.r.ReadString('\n'); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("program is alive and says %q, %v", got, err)
	}
}

// switchboard takes the calls of programs under test.
func switchboard(t *testing.T) (addr string, accept func() line) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, listener.Close()) })
	return listener.Addr().String(), func() line {
		t.Helper()
		check.Must(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(20*time.Second)))
		conn, err := listener.Accept()
		check.Must(t, err)
		check.Must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		t.Cleanup(func() { check.Must(t, conn.Close()) })
		l := line{conn, bufio.NewReader(conn)}
		l.wantLine(t, "here")
		return l
	}
}

func open(t *testing.T, dir string) *child.Registry {
	t.Helper()
	registry, err := child.Open(dir)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, registry.Close()) })
	return registry
}

func start(t *testing.T, registry *child.Registry, command child.Command) *child.Process {
	t.Helper()
	p, err := registry.Start(command)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, p.Kill()) })
	return p
}

func TestStartGivesExactlyTheEnvironment(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := start(t, open(t, t.TempDir()), child.Command{
		Args: []string{"env"}, Env: []string{"PATH=/usr/bin:/bin", "A=1"}, Stdout: &out,
	})
	<-p.Done()
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, variable := range got {
		got[i], _, _ = strings.Cut(variable, "=")
	}
	slices.Sort(got)
	if want := []string{"A", "PATH", "SLIPWAY_PROCESS"}; !slices.Equal(got, want) {
		t.Errorf("environment has %q, want %q", got, want)
	}
}

func TestStartReportsOutputAndExit(t *testing.T) {
	t.Parallel()
	registry := open(t, t.TempDir())
	var both, stdout, stderr bytes.Buffer
	command := child.Command{Args: []string{program()}, Env: []string{"MODE=print"}, Stdout: &both}
	p := start(t, registry, command)
	command.Stdout, command.Stderr = &stdout, &stderr
	q := start(t, registry, command)
	for _, p := range []*child.Process{p, q} {
		<-p.Done()
		if exit, err := p.Exit(); err != nil || exit.String() != "exited with code 3" {
			t.Errorf("got %s, %v; want exited with code 3", exit, err)
		}
	}
	if got, want := both.String(), "to stdout\nto stderr\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if stdout.String() != "to stdout\n" || stderr.String() != "to stderr\n" {
		t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
	}
}

func TestStartReportsWhatCannotRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	registry := open(t, dir)
	for name, c := range map[string]struct {
		args []string
		want error
	}{
		"unknown":      {[]string{"no-such-program"}, exec.ErrNotFound},
		"missing file": {[]string{"./no-such-program"}, os.ErrNotExist},
		"a directory":  {[]string{"/"}, os.ErrPermission},
	} {
		if _, err := registry.Start(child.Command{Args: c.args, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := registry.Start(child.Command{}); err == nil {
		t.Error("no program: got no error")
	}
	wantNoRecords(t, dir)
}

func wantNoRecords(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(left) > 0 {
		t.Errorf("records %v, %v; want none", left, err)
	}
}

func TestStartLooksInTheChildsOwnPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(dir, "hello-from-here"), []byte("#!/bin/sh\necho hello\n"), 0o700))
	var out bytes.Buffer
	p := start(t, open(t, t.TempDir()), child.Command{Args: []string{"hello-from-here"}, Env: []string{"PATH=/nowhere:" + dir}, Stdout: &out})
	<-p.Done()
	if out.String() != "hello\n" {
		t.Errorf("got %q, want hello", &out)
	}
}

func TestKillEndsTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, accept := switchboard(t)
	p := start(t, open(t, dir), child.Command{
		Args: []string{"sh", "-c", `"$PROGRAM" & wait`},
		Env:  []string{"PATH=/usr/bin:/bin", "MODE=call", "ADDR=" + addr, "PROGRAM=" + program()},
	})
	grandchild := accept()
	check.Must(t, p.Kill())
	grandchild.wantDeath(t)
	if exit, err := p.Exit(); err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("got %s, %v; want a kill", exit, err)
	}
	wantNoRecords(t, dir)
}

func TestEndOfTheLeaderEndsTheGroup(t *testing.T) {
	t.Parallel()
	addr, accept := switchboard(t)
	gate := filepath.Join(t.TempDir(), "gate")
	check.Must(t, syscall.Mkfifo(gate, 0o600))
	p := start(t, open(t, t.TempDir()), child.Command{
		Args: []string{"sh", "-c", `"$PROGRAM" & read line <"$GATE"; exit 4`},
		Env:  []string{"PATH=/usr/bin:/bin", "MODE=call", "ADDR=" + addr, "PROGRAM=" + program(), "GATE=" + gate},
	})
	grandchild := accept()
	check.Must(t, os.WriteFile(gate, []byte("go on\n"), 0))
	grandchild.wantDeath(t)
	<-p.Done()
	if exit, err := p.Exit(); err != nil || exit.Code != 4 {
		t.Errorf("got %s, %v; want exit code 4", exit, err)
	}
}

func TestStopLetsTheWholeGroupFinish(t *testing.T) {
	t.Parallel()
	addr, accept := switchboard(t)
	p := start(t, open(t, t.TempDir()), child.Command{
		// The shell ends at once when it is asked to end; the program behind it takes its
		// time.
		Args: []string{"sh", "-c", `"$PROGRAM"; true`},
		Env:  []string{"PATH=/usr/bin:/bin", "MODE=call-and-finish", "ADDR=" + addr, "PROGRAM=" + program()},
	})
	grandchild := accept()
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context(), time.Minute) }()
	grandchild.wantLine(t, "finishing")
	_, err := io.WriteString(grandchild, "go on\n")
	check.Must(t, err)
	grandchild.wantLine(t, "finished")
	check.Must(t, <-stopped)
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(p *child.Process) error{
		"grace is over": func(p *child.Process) error { return p.Stop(t.Context(), time.Millisecond) },
		"context ended": func(p *child.Process) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return p.Stop(ctx, time.Hour)
		},
	} {
		addr, accept := switchboard(t)
		p := start(t, open(t, t.TempDir()), child.Command{
			Args: []string{program()}, Env: []string{"MODE=call-and-finish", "ADDR=" + addr},
		})
		accept()
		check.Must(t, stop(p))
		if exit, err := p.Exit(); err != nil || exit.Signal != syscall.SIGKILL {
			t.Errorf("%s: got %s, %v; want a kill", name, exit, err)
		}
	}
}

// startServer runs a server of its own whose child runs the script, and returns a function
// that kills the server.
func startServer(t *testing.T, dir, addr, script string) (kill func()) {
	t.Helper()
	server := exec.Command(program())
	server.Env = []string{"MODE=server", "DIR=" + dir, "ADDR=" + addr, "SCRIPT=" + script, "PATH=" + os.Getenv("PATH")}
	server.Stderr = os.Stderr
	check.Must(t, server.Start())
	return func() {
		t.Helper()
		check.Must(t, server.Process.Signal(syscall.SIGKILL))
		if err := server.Wait(); err == nil {
			t.Error("the server was not killed")
		}
	}
}

func TestOpenEndsWhatAKilledServerLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, accept := switchboard(t)
	kill := startServer(t, dir, addr, `"$PROGRAM" & wait`)
	grandchild := accept()
	if _, err := child.Open(dir); err == nil {
		t.Error("a registry in use was opened a second time")
	}
	kill()
	open(t, dir)
	grandchild.wantDeath(t)
	wantNoRecords(t, dir)
}

func TestFailingOutputDoesNotStopTheChild(t *testing.T) {
	t.Parallel()
	p := start(t, open(t, t.TempDir()), child.Command{
		Args: []string{"sh", "-c", "head -c 1000000 /dev/zero"}, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: brokenWriter{},
	})
	<-p.Done()
	exit, err := p.Exit()
	if exit != (child.Exit{}) || !errors.Is(err, errBroken) {
		t.Errorf("got %s, %v; want exit code 0 and the writer's error", exit, err)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// connect and listen are the attempts of a hostile program.
func connect() {
	conn, err := (&net.Dialer{}).DialContext(context.Background(), os.Getenv("NETWORK"), os.Getenv("ADDR"))
	if err != nil {
		panic(err)
	}
	conn.Close()
}

func listen() {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", os.Getenv("ADDR"))
	if err != nil {
		panic(err)
	}
	listener.Close()
}
