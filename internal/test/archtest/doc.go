// Package archtest holds the rules of the source tree as tests: the allowed imports of each
// package, the place of each kind of file, and the texts that no file may contain.
//
// A rule that prevents good code is changed here, with its reason beside it.
package archtest
