// Package agenthost offers one machine's compute target and builder over HTTP, to functions that
// run as other processes or containers of the machine. Packages compute/remote and build/remote are
// its clients, package agenthost/wire is what they agree on.
//
//	POST   /releases                                   apply a release
//	GET    /releases/{workspace}/{deployment}/{revision}?wait=  its status, as soon as it is final
//	DELETE /releases/{workspace}/{deployment}/{revision}        remove it
//	GET    /releases/{workspace}/{deployment}/{revision}/relapse?wait=  why it cannot be relied on
//	                                                                    any more, as soon as that
//	                                                                    shows
//	POST   /ends                                       which agents have ended, but for those that
//	                                                   were told
//	POST   /builds                                     start a build
//	GET    /builds/{revision}?wait=                    its result, as soon as there is one
//	DELETE /builds/{revision}                          cancel and erase it
//	POST   /logs/{revision}/{kind}                     read a part of a log
//	GET    /logs/{revision}/{kind}/changes             be told, by one line each, that there is
//	                                                   something new in it
//	POST   /uploads                                    say where a tarball that is to be built can
//	                                                   be put
//	POST   /uploads/{workspace}/{deployment}           list a deployment's tarballs
//	DELETE /uploads/{workspace}/{deployment}           erase some of them
//	PUT    /uploads/{workspace}/{deployment}/{object}  take one, from whoever was told so
//	POST   /agents/{workspace}/{deployment}/{revision}/invocations  invoke the agent
//	GET    /agents/{workspace}/{deployment}/{revision}/ping         ask it how it is
//
// Releases, builds and questions about uploads want the host's own bearer token. An invocation
// carries the release's, which goes on to the agent: the host only keeps those out who do not have
// it. The host counts callers, so that a release that is removed drains exactly, and callers need
// to reach no port but the host's. An answer may take as long as an invocation does: the HTTP
// server must not limit the time to write.
//
// What was applied is kept in sealed files, because agents are given secrets, and started again by
// Restore. Bodies are never logged.
package agenthost
