// Package quota defines how much of a server one workspace may use, and counts the use.
//
// [All] is the one table of quotas: name, default, what is counted, and how a request is refused
// when the quota is used up. An operator changes them for all workspaces ([Limits]).
//
// # Counts are exact
//
// A count changes in the transaction that makes or removes the counted object, under the condition
// that there is a place left. So if two requests want the last place, exactly one succeeds, also
// when two Lambda functions serve them.
//
// Objects that are made rarely (deployments, crons, webhooks, tokens of the Auth Service) have one
// count per quota: a record.Count, which Limits.Take bounds. The count of deployments holds the
// count of their replicas, too (Limits.Rescale); the replicas of a deployment that an older version
// has made are counted with its next revision, and its tokens are not counted.
//
// Threads and runs are made often, and one item cannot take more than a few hundred transactions a
// second. Their counts have several parts ([Pool]), each of which may hold an equal share of the
// limit. A thread's id determines its part. When that part is full, another part takes the thread,
// until all parts are full, and the thread's item notes the part. So nothing is read before a write
// as long as the part has room, and a run costs one small write when it begins and one when it
// ends. Objects that older versions have made get a part when they change next.
//
// # Stored bytes are counted by chance
//
// An approximate size of the stored data is enough. So [Stored] is counted in grains, a
// ten-thousandth of the limit each (10 MB by default): an object counts a whole number of grains,
// which is drawn by chance so that it is the object's size on average ([Pool.Draw]). Most objects
// are small and count nothing, so a run costs no additional write; each grain costs one transaction
// of 16 small updates, which is 32 write units on AWS beside the 10,000 or more of the grain
// itself. The counted bytes are noted in the thread, or in the item of the store, and given back
// with it. Items that expire are counted until the end of their month, because no code notices when
// they are erased.
//
// All parts of the pool hold the same bytes, so the write that takes a place for a thread or a run
// also has the condition that there is room. A write that takes no place ([Pool.Room]: an item, a
// state, a run that waits behind another run) asks the table when it would count something. Runs
// that are under way continue: a run's own limits end it. Data that other quotas or limits bound
// (deployments, crons, assistants, logs), or that older versions have stored, are not counted.
//
// # Files are measured
//
// [FileBytes] bounds uploads, builds and pushed images where they are files of the server's
// machine: [Files] asks the packages that keep the files for their size. On AWS it bounds nothing,
// and has no figure. It does not count caches of builds, logs, and files that agents write: limits
// of their own bound these.
//
// # Rates and streams are counted by each process, and by Shared
//
// A web.Limiter counts [Requests], [Streams] and [ThreadStreams] in memory. On one machine there is
// one process, so nothing more is needed: twice as many requests as the quota may come at once. On
// AWS there are many processes, so the limiter also asks [Shared], which counts in the table:
//
//   - Streams. A stream is one place in the count of its workspace and in the count of its thread,
//     for a term of a minute; what counts is the sum of the current term and of the term before. A
//     stream renews its place once in each term, and gives it back at its end. So the quotas are
//     exact, and the places of a dead process are free after two terms at the latest. Exceptions:
//     streams that begin within the few milliseconds in which a term begins may be too many, by as
//     many as begin then; streams whose process cannot reach the table for a term are not counted;
//     and when the answer to a write was lost, or a process dies between two of them, one stream
//     more or less may be open for two terms. The count of a workspace has several parts if its
//     limit is high, so that one item need not take all writes; a part that is full sends a stream
//     to another part. A stream costs two small writes, and two at its end; each further minute
//     costs a transaction of four small writes.
//
//   - Requests. A process adds the requests of a workspace to the count of a window of 10 s, in
//     grains of a thousandth of what the window allows, or of 10 requests if that is more. A
//     process that finds the count full refuses all requests until the end of the window. So a
//     workspace that sends a process at most one request a second costs nothing, and others cost
//     one small transaction for each grain. P processes accept at most (P+1)/1000 of the quota too
//     many, or one request a second each if that is more. All requests of a window may come at
//     once.
//
//   - Visitors, who need no key, have parts of the quotas of requests and streams beside them, for
//     each deployment and for each address ([Shared.Visit]), counted in the same two ways.
//
// A usage plan of API Gateway could bound the requests of a workspace, too, but only if each
// workspace had a key there, and there are at most 10,000 such keys.
package quota
