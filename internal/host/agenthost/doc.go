// Package agenthost offers one machine's compute target and builder over HTTP, to functions
// that run as other processes or containers of the machine. Packages compute/remote and
// build/remote are its clients; package seam/wire has the types that both sides share.
//
//	POST   /releases                                   apply a release
//	GET    /releases/{workspace}/{deployment}/{revision}?wait=
//	                                                   its status, as soon as it is final
//	DELETE /releases/{workspace}/{deployment}/{revision}
//	                                                   remove it
//	GET    /releases/{workspace}/{deployment}/{revision}/relapse?wait=
//	                                                   why it is unreliable by now, as soon as
//	                                                   this is known
//	POST   /ends                                       the agents that have ended, except agents
//	                                                   that the caller has reported
//	POST   /builds                                     start a build
//	GET    /builds/{revision}?wait=                    its result, as soon as it exists
//	DELETE /builds/{revision}                          cancel and erase it
//	POST   /logs/{revision}/{kind}                     read a part of a log
//	GET    /logs/{revision}/{kind}/changes             receive one line for each change of the log
//	POST   /uploads                                    return the address for a tarball to build
//	POST   /uploads/{workspace}/{deployment}           list a deployment's tarballs
//	DELETE /uploads/{workspace}/{deployment}           erase some of them
//	PUT    /uploads/{workspace}/{deployment}/{object}  accept a tarball at that address
//	POST   /agents/{workspace}/{deployment}/{revision}/invocations  invoke the agent
//	GET    /agents/{workspace}/{deployment}/{revision}/ping         check the agent's health
//
// Requests about releases, builds and uploads need the host's own bearer token. An invocation
// carries the release's token, which goes on to the agent: the host only refuses callers
// without it. The host counts callers, so that a release that is removed drains exactly, and
// callers need access to no port except the host's. Where there is no agent, the host answers at
// once, as the load balancer of a stack would. An answer may take as long as an invocation does:
// the HTTP server must not limit the time to write.
//
// Applied releases are kept in sealed files, because agents are given secrets, and Restore
// starts them again. Bodies are never logged.
package agenthost
