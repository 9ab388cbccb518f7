// Package inbound bounds the connections that a server holds, so that the connections of one
// client cannot keep other clients out.
//
// A connection is anonymous until one of its requests has proven which workspace it acts for
// ([Known]). Anonymous and known connections have separate places, so clients without keys
// never take the places of clients with keys. The server always accepts a connection. When all
// places are taken, the group that holds the most places loses a connection: an idle one if it
// has any, else its oldest. A group is a remote address (of IPv6 the network of 64 bits) among
// anonymous connections and a workspace among known ones.
package inbound
