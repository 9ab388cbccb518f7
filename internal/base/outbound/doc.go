// Package outbound calls addresses that users name: OAuth providers, receivers of webhooks. It
// makes sure that such a call does not reach machines behind the server's own firewall.
//
// An address is checked twice. When a URL is stored, CheckURL refuses it if its text shows
// that the address may not be called. Directly before the connection is made, the client's
// dialer checks the address that a name was resolved to. The client follows no redirect and
// uses no proxy, and bounds the time and the size of each answer. If a server may call its own
// network, a setting allows private addresses.
//
// The rule is written here and not taken from a library, because it holds in three places: for
// the text of a stored URL, for the connections of a client, and for those of programs as git,
// which use a Proxy. A client that is safe by itself covers only the second place.
package outbound
