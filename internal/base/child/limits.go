package child

// Limits bound the resources that a program and all processes that it starts use together. A
// zero field bounds nothing. If the system has no means for a limit, nothing is bounded, and
// CanLimit says why.
type Limits struct {
	// CPU is in cores.
	CPU float64
	// MemoryMB is in MiB. A program that needs more is ended with all its processes, and its
	// Exit says so.
	MemoryMB int
	// Processes is the largest number of processes and threads at a time.
	Processes int
}
