// Package apigateway is a REST API of API Gateway on one machine: it serves the routes that a
// template declares by calling their functions with the same events, and it sends API
// Gateway's own answers in the form that the template defines.
//
// It is at the root of its address, like an API behind a custom domain. It emulates the
// features on which handlers could depend: the route of a path, authorizers with their cache,
// base64 for binary types, sizes, timeouts, the throttle of each method, and streams, of which
// every part is passed on at once. It has no firewall, no TLS, no throttle of the whole account,
// and does not validate requests.
package apigateway
