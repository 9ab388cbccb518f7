// Package apigateway is a REST API of API Gateway on one machine: it serves the routes that a
// template declares by calling their functions with the same events, and gives the answers that API
// Gateway gives by itself as the template words them.
//
// It is at the root of its address, as an API behind a custom domain is. It has what handlers could
// depend on: which route a path belongs to, authorizers with their cache, base64 for binary types,
// sizes, timeouts, and streams, of which every part is sent on at once. It has no throttling, no
// firewall, no TLS, and does not validate requests.
package apigateway
