// Package output is how the command line tells what happens: as lines for people, which are redrawn
// at a terminal, or as one JSON object per line for programs; and how it prints lists.
//
// Data goes to stdout, everything else to stderr.
package output
