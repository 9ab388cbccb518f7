package child

import (
	"errors"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes makes the child lead a group and a session of its own, and makes the kernel kill
// the child when the thread that started it ends. The session has no terminal: in the server's
// session, every user may open the server's terminal as /dev/tty, and read and type what a person
// types there.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// startThread passes work to an operating system thread that ends only with the server. Go may
// end other threads at any time, and the kernel treats the end of the starting thread as the
// end of the parent.
var startThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go runStartThread(work)
	return work
})

func runStartThread(work <-chan func()) {
	runtime.LockOSThread()
	for do := range work {
		do()
	}
}

// startBound starts the command so that it dies with the server.
func startBound(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	startThread() <- func() { started <- cmd.Start() }
	return <-started
}

// startTime is not needed here, because the mark in its environment identifies a process.
func startTime(int) (string, error) { return "", nil }

// endLeftovers kills every process that has the mark of a record: the children themselves and
// the processes that they started, also processes that left their group.
func endLeftovers(left []record) error {
	names := make([]string, len(left))
	for i, rec := range left {
		names[i] = rec.mark
	}
	return endMarked(marksOf(names...))
}

// PeerOf returns the user of the program that listens at the other end of a connection.
func PeerOf(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var found *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { found, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(found.Uid), nil
}
