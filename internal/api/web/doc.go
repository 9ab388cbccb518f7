// Package web holds the HTTP behaviour that every server of Slipway shares, so that handlers
// contain only the product's own logic.
//
// A server is a [Mux]. It gives each request an id, logs it, recovers its panics, answers unknown
// paths and methods, and turns errors of package fault into responses ([Mux.Error]). Operations of
// an OpenAPI document are registered through [Mux.Routes]: a [Contract] checks each request against
// the document before the generated handler sees it, and reports all of a request's problems at
// once. The handler then binds exactly what was checked.
//
// Two kinds of answer write themselves: a [Stream] of server-sent events, and [Await], a JSON
// answer that may take a long time.
package web
