// Package stack is what the functions of one AWS stack have in common: the variables that its
// template gives them, and the adapters and stores that are made of these. Each is made when it is
// first asked for, once, and nothing is sent before a request needs it.
//
// Packages stack/agents and stack/rollouts add where agents run and how they are built, for the few
// functions that touch them, so that the others need not carry it.
package stack
