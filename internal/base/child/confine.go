package child

// Confinement keeps a program from a directory: of all that is below Private it reaches what is named here, and it has no way into the memory and environment of
// processes that are not its own. Names in the directory can still be listed. Where the system has no means for it, nothing is kept from the program, and
// Confines says so.
type Confinement struct {
	// Private is the directory, "" for none.
	Private string
	// Write are the paths in it that the program may read, run and change, Read those that it may read and run. One that does not exist is left out.
	Write, Read []string
}
