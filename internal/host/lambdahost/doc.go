// Package lambdahost lets the same handlers and tasks run as Lambda functions.
//
// [Buffered] and [Streaming] serve API Gateway's proxy events (version 1, of a REST API) with an
// http.Handler. Requests are read by the api-proxy module, responses are written by this
// package: the module's writer holds everything back until the handler has ended. A request
// that would outlive its function is cut short before, with a fault.Unavailable as the cause,
// so that its handler answers it and not a dead process: with a 503, or when the response has
// begun, with an error after which clients resume the stream.
//
// [Authorizer] answers API Gateway's question whether a caller is admitted. Its result comes
// with the event, and [Gateway] reads it there: no function behind it authenticates a request a
// second time. A result without a workspace says that the platform does not know the caller.
//
// [Task] serves the Task states of Step Functions, [Schedule] a timer.
package lambdahost
