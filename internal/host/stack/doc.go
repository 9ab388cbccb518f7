// Package stack holds the common parts of the functions of one AWS stack: the variables that
// its template gives them, and the adapters and stores that are made from these variables. Each
// of them is made once, at its first use. No request is sent before it is needed, except for the
// data key, which a function reads at its start.
//
// Packages stack/agents and stack/rollouts add the place where agents run and how they are
// built, for the few functions that use them, so that the other functions do not contain this
// code.
package stack
