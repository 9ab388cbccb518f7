// Package quota says how much of a server one workspace may take, and counts it.
//
// [All] is the one table of quotas: the name of each, its default, what it counts and how a request
// is refused that finds it used up. An operator changes them for all workspaces ([Limits]).
//
// # Counts are exact
//
// A count changes in the transaction that makes or removes what it counts, and the condition that
// there is a place left is part of that transaction. So of two requests that want the last place
// exactly one succeeds, also when they are served by two Lambda functions.
//
// Things that are made rarely (deployments, crons, webhooks) have one count each: a record.Count,
// which Limits.Take bounds. What older versions have made is counted when the count changes first.
//
// Threads and runs are made often, and one item cannot take more than some hundred transactions a
// second. Their counts lie in several parts ([Pool]), each of which may hold an equal share of the
// limit. A thread belongs to the part that its id falls to. When that part is full, another one
// takes the thread, and the thread's item notes which. A request is refused when all parts are
// full. So nothing is read before a write as long as the part of the thread has room, and a run
// costs one small write when it begins and one when it ends. What older versions have made has no
// part, and gets one when it changes next.
//
// # Rates and streams are counted by each process
//
// What passes is not worth a write: [Requests] and [Streams] are counted in memory, by a
// web.Limiter. On one machine there is one process, so these quotas are of the whole server. On AWS
// each Lambda process counts alone, and a process answers one request at a time. There Requests
// bounds what one process takes, and Streams, unless it is 0, bounds nothing: the throttle of API
// Gateway and the concurrency that is reserved for the functions bound the stack as a whole.
package quota
