package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// groupAttributes makes the child lead a group of its own and has the kernel kill it when the thread that started it ends.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startThread hands work to an operating system thread that ends only with the server. Go ends other threads as it likes, and the
// kernel takes the end of the starting thread for the end of the parent.
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

// startTime is not needed here: a process is known again by the mark in its environment.
func startTime(int) (string, error) { return "", nil }

// endLeftovers kills every process whose environment has the mark of a record: the children themselves and what they started, also
// where it left their group.
func endLeftovers(left []record) error {
	marks := make([][]byte, len(left))
	for i, rec := range left {
		marks[i] = []byte(markVariable + "=" + rec.mark)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		pids, err := marked(marks)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of an earlier server do not end", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
}

// marked lists the processes that have one of the marks in their environment. Processes that end meanwhile, and those of other users,
// are none of ours.
func marked(marks [][]byte) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Equal(mark, variable) }) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}
