// Package lambda is the platform for functions on one machine: it starts the same `bootstrap`
// programs that are deployed and serves them the Runtime API, so the tested programs are the
// deployed programs.
//
// Each function has a pool of processes. A process handles one call at a time, or as many as the
// function's template says, as on a managed instance; calls that find no free process start another
// process, up to the function's concurrency. Calls beyond the concurrency that the function
// reserves, or beyond that of the account for all functions that reserve none, are throttled;
// asynchronous calls are then repeated. Free processes are used again, first the process that has
// been free for the shortest time. They end when no call has needed them for a while, or when their
// program was replaced. Timeouts, sizes, errors of start-up and of calls, streams with their error
// trailers and the environment are as on the platform. A stream is as fast as its reader, while AWS
// slows it down to 2 MB/s after its first 6 MB. Memory is not limited, and a process may use the
// whole machine. An account may reserve all of its concurrency but one call, while AWS wants 100
// calls to be left.
package lambda
