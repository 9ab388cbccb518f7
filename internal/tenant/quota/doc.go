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
// # Stored bytes are counted by chance
//
// Of what is stored, only the size is of interest, and only nearly. So [Stored] is counted in
// grains, a ten-thousandth of the limit each (10 MB by default): a thing counts a whole number of
// them, drawn by chance so that it is the size of the thing on average ([Pool.Draw]). Most things
// are small and count nothing. So a run costs no write more; each grain costs one transaction of 16
// small updates, which is 32 write units on AWS beside the 10,000 or more of the grain itself. What
// is counted is noted in the thread, or in the item of the store, and given back with that. Items
// that expire are counted until the end of their month, as nobody sees them go.
//
// All parts of the pool hold the same bytes, so the write that takes a place for a thread or a run
// also has the condition that there is room. What takes no place ([Pool.Room]: an item, a state, a
// run that waits behind another) asks the table when it would count something. What is under way
// goes on: a run's own bounds end it.
//
// Not counted is what other quotas or limits bound (deployments, crons, assistants, logs), and what
// older versions have stored.
//
// # Files are measured
//
// Uploads, builds and pushed images are files of the server's machine, or objects that services of
// AWS keep. [FileBytes] bounds the former, of which [Files] asks those that keep them for their
// size. On AWS it bounds nothing, and has no figure.
//
// # Rates and streams are counted by each process
//
// What passes is not worth a write: [Requests] and [Streams] are counted in memory, by a
// web.Limiter. On one machine there is one process, so these quotas are of the whole server. On AWS
// each Lambda process counts alone, and a process answers one request at a time. There Requests
// bounds what one process takes, and Streams, unless it is 0, bounds nothing: the throttle of API
// Gateway and the concurrency that is reserved for the functions bound the stack as a whole.
package quota
