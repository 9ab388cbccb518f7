// Package lambda is the platform that functions run on, on one machine: it starts the same
// `bootstrap` programs that are deployed and serves them the Runtime API, so that what is tested is
// what will run.
//
// Each function has a pool of processes. A process handles one call at a time; calls that find none
// free start another, up to the function's concurrency. Free processes are used again, the one that
// was free for the shortest time first, and end when nobody has needed them for a while, or when
// their program was replaced. Timeouts, sizes, errors of start-up and of calls, streams with their
// error trailers and the environment are as on the platform. Memory is not limited, and a process
// may use the whole machine.
package lambda
