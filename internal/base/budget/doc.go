// Package budget bounds the memory of a process in bytes, fairly between the workspaces that it
// works for.
//
// One [Budget] is for everything large that waits in memory: bodies of requests, events of
// agents that are not stored yet, parts of streams that clients have not taken. Code that
// holds such bytes opens a [Share] and grows it before it reads more. The rule:
//
//   - A share has an allowance that is not counted, so small pieces of work never wait for
//     large ones.
//   - An owner (a workspace) may hold half of the budget. An owner that holds nothing may get
//     more, so that no single request is too large. If shares are held for long ([NewLasting]), an
//     owner may hold half of the room that the other owners leave, and a claim for which there is
//     no room now stops no other claim. Its caller bounds its wait.
//   - Shares that must wait go on in this order: first the shares of the owner that holds
//     least, and among the shares of one owner the first that came.
//   - When no share can go on, because all held bytes belong to shares that wait to grow, the
//     next share in that order goes on beyond the budget. No other share does so until it has
//     given back enough for the budget to be kept again. So shares that grow in steps cannot
//     block each other for ever, and the budget is exceeded by what one share holds.
//     Code that grows a share more than once must bound the bytes that it holds at a time.
//
// Callers count the memory that a byte costs, because decoding multiplies the size. They also
// count the values of a JSON text ([Values]), whose number no text may have without a bound
// ([MostValues]).
package budget
