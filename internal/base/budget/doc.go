// Package budget bounds the memory of a process in bytes, fairly between the workspaces that it
// works for.
//
// One [Budget] is for everything large that waits in memory: bodies of requests, events of agents
// that are not stored yet, parts of streams that clients have not taken. Who holds such bytes opens
// a [Share] and grows it before it reads more. The rule:
//
//   - A share has an allowance that is not counted, so what is small never waits for what is large.
//   - An owner (a workspace) may hold half of the budget. One that has nothing may have more, so
//     that no single thing is too large.
//   - Shares that must wait go on in this order: first those of the owner that holds least, and of
//     one owner the first that came.
//   - When nothing can go on, because everything that is held belongs to shares that wait to grow,
//     the next one in that order goes on beyond the budget, and no other one does until that one
//     gives something back. So shares that grow in steps cannot block each other for ever. Who
//     grows a share more than once bounds what it holds at a time.
//
// Callers count what a byte costs, not what it is: decoding multiplies it.
package budget
