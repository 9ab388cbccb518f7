// Package archtest holds the rules of the source tree as tests: who may import whom, what lies
// where, and what no file may contain.
//
// A rule that stands in the way of good code is changed here, with its reason beside it.
package archtest
