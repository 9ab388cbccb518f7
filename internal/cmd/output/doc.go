// Package output prints the events of the command line: as lines for people, which are redrawn
// at a terminal, or as one JSON object per line for programs. It also prints lists.
//
// Data goes to stdout, everything else to stderr.
package output
