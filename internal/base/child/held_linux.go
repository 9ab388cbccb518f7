package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// HeldBytes returns how many bytes of dir's file system each process takes by files that have no
// name any more: files that the process, or a process that it has started, has removed and still
// holds open or mapped.
func HeldBytes(dir string, processes []*Process) map[*Process]int64 {
	var of unix.Stat_t
	if unix.Stat(dir, &of) != nil {
		return nil
	}
	removed := func(file *unix.Stat_t) bool {
		return file.Mode&unix.S_IFMT == unix.S_IFREG && file.Nlink == 0 && file.Dev == of.Dev
	}
	held := map[*Process]int64{}
	eachHeld(processes, []string{"fd", "map_files"}, removed, func(p *Process, file *unix.Stat_t) { held[p] += file.Blocks * 512 })
	return held
}

// Sockets returns how many sockets each process holds, together with the processes that it has
// started.
func Sockets(processes []*Process) map[*Process]int {
	socket := func(file *unix.Stat_t) bool { return file.Mode&unix.S_IFMT == unix.S_IFSOCK }
	held := map[*Process]int{}
	eachHeld(processes, []string{"fd"}, socket, func(p *Process, _ *unix.Stat_t) { held[p]++ })
	return held
}

// SocketsInUse returns how many sockets there are in the machine, or in the container of the
// server, 0 if the system does not tell.
func SocketsInUse() (number int) {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "sockets: used %d", &number)
	}
	if err != nil {
		return 0
	}
	return number
}

// eachHeld calls do once for each file that processes, or processes that they have started, hold in
// one of these ways, if the file matches.
func eachHeld(processes []*Process, ways []string, matches func(*unix.Stat_t) bool, do func(*Process, *unix.Stat_t)) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	names := make([]string, len(processes))
	for i, p := range processes {
		names[i] = p.mark
	}
	type key struct{ device, number uint64 }
	wanted, seen := marksOf(names...), map[key]bool{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		i := wanted.of(pid)
		if i < 0 {
			continue
		}
		heldBy(pid, ways, func(file *unix.Stat_t) {
			if of := (key{file.Dev, file.Ino}); matches(file) && !seen[of] {
				seen[of] = true
				do(processes[i], file)
			}
		})
	}
}

// heldBy calls do for each file that a process holds, each time that it holds it. Only root finds
// files that are mapped and not open. A file that disappears meanwhile holds nothing.
func heldBy(pid int, ways []string, do func(*unix.Stat_t)) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return
	}
	looked := 0
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil || looked != 0 && shareFiles(looked, thread) {
			continue
		}
		looked = thread
		for _, way := range ways {
			heldIn(fmt.Sprintf("/proc/%d/%s", thread, way), do)
		}
	}
}

// heldIn calls do for the files to which the links in a directory of /proc lead.
func heldIn(dir string, do func(*unix.Stat_t)) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		var file unix.Stat_t
		if unix.Stat(filepath.Join(dir, entry.Name()), &file) == nil {
			do(&file)
		}
	}
}

// shareFiles reports whether two threads have the same open files. Threads do, until one of them
// ends or takes files of its own. If the kernel does not tell, they do not.
func shareFiles(first, second int) bool {
	const files = 2 // KCMP_FILES
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(first), uintptr(second), files, 0, 0, 0)
	return errno == 0 && order == 0
}
