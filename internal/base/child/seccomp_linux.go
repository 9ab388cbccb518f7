package child

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file writes its filter itself. The library that was considered, go-seccomp-bpf, lets a
// program pass that calls the system as another processor architecture would, if calls are
// allowed unless they are named. It also brings an assembler and a reader of settings along.

// The offsets of the kernel's struct seccomp_data.
const (
	offsetCall, offsetArchitecture, offsetArguments = 0, 4, 16
	// foreignCalls is the beginning of the numbers by which a program on amd64 calls the
	// system as if it ran on a smaller processor.
	foreignCalls = 0x40000000
)

// denied are system calls that bypass Landlock.
var denied = []uint32{
	unix.SYS_OPEN_BY_HANDLE_AT,                              // opens files beside all paths
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, // all programs of a user share keys
	unix.SYS_IO_URING_SETUP, // a ring makes sockets without the calls that are filtered here
}

// lasting are system calls that make objects which stay in the kernel after the end of all programs
// of a user, outside the limits of their memory: memory, queues and semaphores that have no path.
// Libraries fall back to SharedMemory, as on kernels without these calls.
var lasting = []uint32{unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN}

// ownOnly are system calls that act on the caller itself if the argument is 0, and otherwise
// on any process of the same user. A program that has a user of its own may name its threads.
var ownOnly = []struct {
	call     uint32
	argument int
}{
	{unix.SYS_PRLIMIT64, 0}, {unix.SYS_SCHED_SETAFFINITY, 0}, {unix.SYS_SCHED_SETSCHEDULER, 0}, {unix.SYS_SCHED_SETPARAM, 0},
	{unix.SYS_SCHED_SETATTR, 0}, {unix.SYS_SETPRIORITY, 1}, {unix.SYS_IOPRIO_SET, 1},
}

// ofUser are system calls that act on all processes of the caller's user if their first
// argument has the value given here.
var ofUser = []struct{ call, value uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, 3}}

// protocols are kinds of TCP that Landlock's rules for ports do not cover.
var protocols = []uint32{unix.IPPROTO_MPTCP, unix.IPPROTO_SMC}

// limitCalls are system calls that change limits, with the position of the argument that
// selects the limit. The filter refuses changes of the mark of a program's record.
var limitCalls = []struct {
	call     uint32
	argument int
}{{unix.SYS_PRLIMIT64, 1}, {unix.SYS_SETRLIMIT, 0}}

// filterSystemCalls makes the kernel refuse calls that Landlock does not cover, for the
// calling thread and all processes that it starts. If the kernel has no such filters, the
// program runs without them; Gaps says so.
func filterSystemCalls(ownUser bool) error {
	program := systemCallFilter(ownUser)
	if program == nil {
		return nil
	}
	all := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&all))) //nolint:gosec // the kernel takes a structure
	if errno != 0 && !errors.Is(errno, unix.ENOSYS) && !errors.Is(errno, unix.EINVAL) {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// architecture is the kernel's number for this processor's architecture, 0 if the filter does
// not know the architecture.
func architecture() uint32 {
	return map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
}

// systemCallFilter is the filter, nil if there is none for this architecture.
func systemCallFilter(ownUser bool) (program []unix.SockFilter) {
	if architecture() == 0 {
		return nil
	}
	const (
		refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		lack   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	)
	statement := func(code uint16, value uint32) { program = append(program, unix.SockFilter{Code: code, K: value}) }
	load := func(offset uint32) { statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }
	end := func(result uint32) { statement(unix.BPF_RET|unix.BPF_K, result) }
	// unless adds a statement that skips the given number of statements unless the comparison
	// holds.
	unless := func(comparison uint16, value uint32, skip uint8) {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, Jf: skip, K: value})
	}
	load(offsetArchitecture)
	program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: architecture()})
	end(lack)
	if runtime.GOARCH == "amd64" {
		load(offsetCall)
		unless(unix.BPF_JGE, foreignCalls, 1)
		end(lack)
	}
	for _, never := range []struct {
		calls  []uint32
		result uint32
	}{{denied, refuse}, {lasting, lack}} {
		for _, call := range never.calls {
			load(offsetCall)
			unless(unix.BPF_JEQ, call, 1)
			end(never.result)
		}
	}
	for _, own := range ownOnly {
		if ownUser && own.call != unix.SYS_PRLIMIT64 {
			continue
		}
		load(offsetCall)
		unless(unix.BPF_JEQ, own.call, 3)
		// The kernel takes the lower half of the argument for the process.
		load(argument(own.argument))
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: 0})
		end(refuse)
	}
	for _, all := range ofUser {
		if ownUser {
			continue
		}
		load(offsetCall)
		unless(unix.BPF_JEQ, all.call, 3)
		load(argument(0))
		unless(unix.BPF_JEQ, all.value, 1)
		end(refuse)
	}
	for _, protocol := range protocols {
		load(offsetCall)
		unless(unix.BPF_JEQ, unix.SYS_SOCKET, 3)
		load(argument(2))
		unless(unix.BPF_JEQ, protocol, 1)
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT))
	}
	for _, limit := range limitCalls {
		load(offsetCall)
		unless(unix.BPF_JEQ, limit.call, 3)
		load(argument(limit.argument))
		unless(unix.BPF_JEQ, unix.RLIMIT_RTTIME, 1)
		end(refuse)
	}
	end(unix.SECCOMP_RET_ALLOW)
	return program
}

// argument is the offset of the lower half of an argument of a system call.
func argument(index int) uint32 {
	offset := uint32(offsetArguments + 8*index)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		offset += 4
	}
	return offset
}
