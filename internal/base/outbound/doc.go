// Package outbound calls addresses that users name: OAuth providers, receivers of webhooks. It
// keeps such a call from reaching what stands behind the server's own firewall.
//
// An address is checked twice: CheckURL refuses what a URL's text gives away, when it is stored;
// the client's dialer checks the address that a name was resolved to, directly before the
// connection is made. The client follows no redirect and knows no proxy, and bounds the time and
// the size of each answer. A server that is meant to call its own network allows private addresses
// by a setting.
package outbound
