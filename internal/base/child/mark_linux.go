package child

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// markVariable is in the environment of each child and of all processes that it starts. Its
// value is the name of the child's record.
const markVariable = "SLIPWAY_PROCESS"

const (
	// endPatience bounds the wait for the end of marked processes.
	endPatience = 5 * time.Second
	// markedLimit is the line of /proc/PID/limits with the limit that marks a process.
	markedLimit = "Max realtime timeout"
	// leastMark is longer than any program has ever run.
	leastMark = 1 << 60
)

// markOf is a number that identifies all processes of a child, also processes that have left
// its group and emptied their environment. It is the highest value of a limit that concerns
// real-time programs only. A program cannot raise it, and its confinement keeps it from
// lowering it.
func markOf(mark string) uint64 {
	digest := sha256.Sum256([]byte(mark))
	return leastMark | binary.BigEndian.Uint64(digest[:])>>4
}

// setMark marks the calling process and all processes that it starts. A user whose own limit
// is lower cannot have the mark. The mark in the environment remains.
func setMark(mark uint64) error {
	err := unix.Setrlimit(unix.RLIMIT_RTTIME, &unix.Rlimit{Cur: mark, Max: mark})
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}

// marks are the marks of several children, as variables and as limits. limited says that all
// processes of these children have a limit, which is the mark, or is lower than the mark.
type marks struct {
	variables [][]byte
	limits    []uint64
	limited   bool
}

func marksOf(names ...string) marks {
	m := marks{variables: make([][]byte, len(names)), limits: make([]uint64, len(names))}
	for i, name := range names {
		m.variables[i] = []byte(markVariable + "=" + name)
		m.limits[i] = markOf(name)
	}
	return m
}

// endConfined kills every process of a confined child, and returns when there is no such process.
// Without Landlock, children are neither confined nor limited.
func endConfined(name string) error {
	wanted := marksOf(name)
	wanted.limited = Confines()
	return endMarked(wanted)
}

// endMarked kills every process that has one of the marks, in its environment or as its limit,
// and returns when there is no such process.
func endMarked(wanted marks) error {
	quiet := 0 // a process that was just being started may hide from one look
	for deadline := time.Now().Add(endPatience); quiet < 2; time.Sleep(time.Millisecond) {
		killed, err := killMarked(wanted)
		if err != nil {
			return err
		}
		if quiet++; killed > 0 {
			quiet = 0
		}
		if killed > 0 && time.Now().After(deadline) {
			return fmt.Errorf("%d processes of a child that is over do not end", killed)
		}
	}
	return nil
}

// killMarked kills the marked processes that exist, and counts them. It does not count
// processes that end meanwhile, or processes of others.
func killMarked(wanted marks) (killed int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || wanted.of(pid) < 0 {
			continue
		}
		// The killed process is the one that was checked, not another process that has got the
		// number since.
		process, err := os.FindProcess(pid)
		if err != nil {
			return killed, err
		}
		if wanted.of(pid) >= 0 {
			err = process.Kill()
			killed++
		}
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
		if err = errors.Join(err, process.Release()); err != nil {
			return killed, fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return killed, nil
}

// of returns which of the marks a process has, -1 if it has none of them.
func (m marks) of(pid int) int {
	limit, err := limitOf(pid)
	if err != nil {
		return -1
	}
	if i := slices.Index(m.limits, limit); i >= 0 && alive(pid) {
		return i
	}
	// Most processes of a machine have no limit. Reading their environments would be slow.
	if m.limited && limit == unix.RLIM_INFINITY {
		return -1
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return -1
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if i := slices.IndexFunc(m.variables, func(mark []byte) bool { return bytes.Equal(mark, variable) }); i >= 0 {
			return i
		}
	}
	return -1
}

// limitOf returns the limit that marks a process. The kernel writes all limits of a process into
// the text in /proc, which takes some fifty times as long as to ask for one, but it may answer for
// the processes of other users only there.
func limitOf(pid int) (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_RTTIME, nil, &limit); !errors.Is(err, unix.EPERM) {
		return limit.Max, err
	}
	return readLimit(pid)
}

// readLimit reads the limit that marks a process from the text of its limits.
func readLimit(pid int) (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if values, found := bytes.CutPrefix(line, []byte(markedLimit)); found {
			if fields := bytes.Fields(values); len(fields) > 1 && !bytes.Equal(fields[1], []byte("unlimited")) {
				return strconv.ParseUint(string(fields[1]), 10, 64)
			}
		}
	}
	return unix.RLIM_INFINITY, nil
}

// alive reports whether a process runs. A process that has ended, but whose parent has not
// read its exit yet, does not count: no signal ends it. A process whose first thread has ended
// looks like one, and has other threads.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The program chooses its name, which is in front of the state in parentheses.
	fields := bytes.Fields(status[bytes.LastIndexByte(status, ')')+1:])
	const state, threads = 0, 17
	if len(fields) <= threads {
		return false
	}
	number, err := strconv.Atoi(string(fields[threads]))
	return err == nil && (number > 1 || !bytes.ContainsAny(fields[state], "ZX"))
}
