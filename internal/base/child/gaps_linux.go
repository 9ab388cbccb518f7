package child

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedGap is the gap where the files of agents cannot be told from other files of one user.
const sharedGap = "Agents and builds have no users of their own: what they write to " + SharedMemory + ", and so to the machine's memory, is neither bounded nor removed."

// Gaps lists, in one sentence each, the files and actions that this system cannot keep from
// confined programs. noUsers is why workspaces have no users of their own, nil if they have.
func Gaps(noUsers error) []string {
	users := noUsers == nil
	if !Confines() {
		return []string{
			fmt.Sprintf("This kernel has no Landlock of version %d or newer: agents and builds can read and change all files that the server's user can.", neededABI),
			sharedGap,
		}
	}
	var gaps []string
	add := func(gap bool, sentence string) {
		if gap {
			gaps = append(gaps, sentence)
		}
	}
	add(!users, fmt.Sprintf("Agents and builds run as the server's own user (%v): outside the data directory they can read all files that this user can, such as those in ~/.ssh and ~/.aws, "+
		"change the modes, owners and times of its files, and connect to its Unix sockets (D-Bus, systemd, ssh-agent, Docker, those of other agents). "+
		"Start the server as root, with its data in /var/lib/slipway, and each workspace gets a user of its own.", noUsers))
	add(!users, sharedGap)
	add(landlock() < portABI, "This kernel has no Landlock of version 4: an agent can take a port that another agent is about to get.")
	add(landlock() < scopeABI, "This kernel has no Landlock of version 6: agents and builds can connect to abstract Unix sockets.")
	add(landlock() < scopeABI && !users, "This kernel has no Landlock of version 6: agents and builds can end the server and other agents by signals.")
	add(!filtersSystemCalls(), "This kernel does not filter system calls: a process that leaves its agent or build on purpose can go on when that has ended.")
	add(!filtersSystemCalls(), "This kernel does not filter system calls: the System V shared memory of agents and builds is neither bounded nor removed.")
	add(!filtersSystemCalls() && !users, "This kernel does not filter system calls: agents and builds can slow or end the server and other agents by changing their limits.")
	return gaps
}

// Separates reports whether this system keeps the programs of a tenant from the data and the work
// of other tenants and of the server. noUsers is as for Gaps. Programs of one user can open the
// user's files to others and connect to its sockets. A kernel without rules for ports lets a
// program take the port of another tenant's program, with the requests that come there.
func Separates(noUsers error) bool { return noUsers == nil && Confines() && landlock() >= portABI }

// filtersSystemCalls reports whether filterSystemCalls has an effect here.
func filtersSystemCalls() bool {
	const actionAvailable = 2 // SECCOMP_GET_ACTION_AVAIL
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, actionAvailable, 0, uintptr(unsafe.Pointer(&action))) //nolint:gosec // the kernel takes a number's address
	return errno == 0 && architecture() != 0
}
