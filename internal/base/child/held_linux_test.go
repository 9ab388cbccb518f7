package child_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// hiding begins the argument that makes the test binary a program that hides something. The rest of
// the argument says how.
const hiding = "hide-"

// hiddenBytes and hiddenSockets are what such a program holds.
const hiddenBytes, hiddenSockets = 8 << 20, 20

func init() { //nolint:gochecknoinits // here, the program runs in its first thread
	if len(os.Args) != 2 {
		return
	}
	how, found := strings.CutPrefix(os.Args[1], hiding)
	if !found {
		return
	}
	switch how {
	case "nothing":
		takeFiles()
	case "name":
		name := []byte("x) Z\x00")
		panicOn(unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0))
		takeFiles()
	case "files":
		// For this timer, the runtime opens its poller before a thread has files of its own.
		time.AfterFunc(time.Hour, func() {})
		go func() {
			runtime.LockOSThread()
			panicOn(unix.Unshare(unix.CLONE_FILES))
			takeFiles()
		}()
		<-time.After(time.Hour)
	case "life":
		go takeFiles()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // it ends the first thread only
	case "outside":
		leaveHidden()
	}
}

// takeFiles holds a removed file and sockets, and says so.
func takeFiles() {
	file, err := unix.Open("big", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	panicOn(err)
	_, err = unix.Write(file, make([]byte, hiddenBytes))
	panicOn(err)
	panicOn(unix.Unlink("big"))
	for range hiddenSockets {
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		panicOn(err)
	}
	fmt.Println("taken")
	<-time.After(time.Hour)
}

// leaveHidden starts a program with a session of its own and no environment, whose first thread
// ends, and prints its process id.
func leaveHidden() {
	program := exec.Command("/proc/self/exe", hiding+"life")
	program.Env, program.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
	output, err := program.StdoutPipe()
	panicOn(err)
	panicOn(program.Start())
	_, err = bufio.NewReader(output).ReadString('\n')
	panicOn(err)
	fmt.Println(program.Process.Pid)
	os.Exit(0)
}

// startHiding starts a program that hides something.
func (g ground) startHiding(t *testing.T, how string, out io.Writer) *child.Process {
	t.Helper()
	return start(t, g.registry, child.Command{
		Args: []string{"/proc/self/exe", hiding + how}, Dir: g.own, Stdout: out,
		Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user, Ports: []uint16{0}},
	})
}

// TestAttackByHiddenFiles has programs that hold removed files and sockets where they are hard to
// find: with a misleading name, by a thread with files of its own, and by a thread that has
// outlived the first one.
func TestAttackByHiddenFiles(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		for _, how := range []string{"nothing", "name", "files", "life"} {
			taken := make(chan struct{})
			p := g.startHiding(t, how, signalled{new(bytes.Buffer), taken})
			<-taken
			all := []*child.Process{p}
			removed, sockets := child.HeldBytes(g.data, all)[p], child.Sockets(all)[p]
			if removed < hiddenBytes || removed > 2*hiddenBytes || sockets != hiddenSockets {
				t.Errorf("%s, %s: %d bytes and %d sockets are found", name, how, removed, sockets)
			}
			check.Must(t, p.Kill())
		}
	}
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}
