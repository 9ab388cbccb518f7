package child

// Limits bound what a program and all that it starts use together; a zero bounds nothing. Where the
// system has no means for it nothing is bounded, and CanLimit says why.
type Limits struct {
	// CPU is in cores.
	CPU float64
	// MemoryMB is in MiB. A program that needs more is ended as a whole, and its Exit says so.
	MemoryMB int
	// Processes is how many processes and threads there may be at a time.
	Processes int
}
