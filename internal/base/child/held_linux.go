package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Held returns how many bytes of dir's file system each process takes by files that have no name
// any more: files that the process, or a process that it has started, has removed and still holds
// open or mapped.
func Held(dir string, processes []*Process) map[*Process]int64 {
	var of unix.Stat_t
	entries, err := os.ReadDir("/proc")
	if err != nil || unix.Stat(dir, &of) != nil {
		return nil
	}
	names := make([]string, len(processes))
	for i, p := range processes {
		names[i] = p.mark
	}
	wanted, seen, held := marksOf(names...), map[uint64]bool{}, map[*Process]int64{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		i := wanted.of(pid)
		if i < 0 {
			continue
		}
		for _, file := range removedFiles(pid) {
			if file.Dev == of.Dev && !seen[file.Ino] {
				seen[file.Ino] = true
				held[processes[i]] += file.Blocks * 512
			}
		}
	}
	return held
}

// removedFiles returns the files without a name that a process holds. Only root finds files that
// are mapped and not open. A file that disappears meanwhile holds nothing.
func removedFiles(pid int) (files []unix.Stat_t) {
	for _, kind := range []string{"fd", "map_files"} {
		dir := fmt.Sprintf("/proc/%d/%s", pid, kind)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			var file unix.Stat_t
			if unix.Stat(filepath.Join(dir, entry.Name()), &file) == nil && file.Mode&unix.S_IFMT == unix.S_IFREG && file.Nlink == 0 {
				files = append(files, file)
			}
		}
	}
	return files
}
