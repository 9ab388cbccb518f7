// Package quota defines how much of a server one workspace may use, and counts the use.
//
// [All] is the one table of quotas: the name of each quota, its default, what it counts, and
// how a request is refused when the quota is used up. An operator changes them for all
// workspaces ([Limits]).
//
// # Counts are exact
//
// A count changes in the transaction that makes or removes the counted object, and the
// condition that there is a place left is part of that transaction. So if two requests want
// the last place, exactly one succeeds, also when two Lambda functions serve them.
//
// Objects that are made rarely (deployments, crons, webhooks) have one count per quota: a
// record.Count, which Limits.Take bounds. Objects that older versions have made are counted
// when the count changes for the first time. The count of deployments holds the count of their
// replicas, too (Limits.Place). The replicas of a deployment that an older version has made are
// counted with its next revision.
//
// Threads and runs are made often, and one item cannot take more than a few hundred
// transactions a second. Their counts are divided into several parts ([Pool]), each of which
// may hold an equal share of the limit. The id of a thread determines its part. When that part
// is full, another part takes the thread, and the thread's item notes the part. A request is
// refused when all parts are full. So nothing is read before a write as long as the part of
// the thread has room, and a run costs one small write when it begins and one small write when
// it ends. Objects that older versions have made have no part, and get a part when they change
// next.
//
// # Stored bytes are counted by chance
//
// Only the size of stored data matters, and an approximate size is enough. So [Stored] is
// counted in grains, a ten-thousandth of the limit each (10 MB by default): an object counts a
// whole number of grains, which is drawn by chance so that it is the object's size on average
// ([Pool.Draw]). Most objects are small and count nothing. So a run costs no additional write;
// each grain costs one transaction of 16 small updates, which is 32 write units on AWS beside
// the 10,000 or more of the grain itself. The counted bytes are noted in the thread, or in the
// item of the store, and given back with it. Items that expire are counted until the end of
// their month, because no code notices when they are erased.
//
// All parts of the pool hold the same bytes, so the write that takes a place for a thread or a
// run also has the condition that there is room. A write that takes no place ([Pool.Room]: an
// item, a state, a run that waits behind another run) asks the table when it would count
// something. Runs that are under way continue: a run's own limits end it.
//
// Data that other quotas or limits bound (deployments, crons, assistants, logs) is not
// counted, and neither is data that older versions have stored.
//
// # Files are measured
//
// Uploads, builds and pushed images are files of the server's machine, or objects in AWS
// services. [FileBytes] bounds the files: [Files] asks the packages that keep the files for
// their size. On AWS it bounds nothing, and has no figure. It does not count caches of builds,
// logs, and files that agents write: limits of their own bound these.
//
// # Rates and streams are counted by each process
//
// Requests and connections are not worth a write: [Requests] and [Streams] are counted in
// memory, by a web.Limiter. On one machine there is one process, so these quotas apply to the
// whole server. On AWS each Lambda process counts alone, and a process answers one request at
// a time. There Requests bounds the requests of one process, and Streams, unless it is 0,
// bounds nothing: the throttle of API Gateway and the concurrency that is reserved for the
// functions bound the stack as a whole.
package quota
