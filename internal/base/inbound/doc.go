// Package inbound bounds the connections that a server holds, such that nobody's connections keep
// others out.
//
// A connection is anonymous until one of its requests has proven whose it is ([Known]). Anonymous
// connections and known ones have separate places, so strangers never take the places of those with
// keys. The server always accepts: when all places are taken, the group that holds the most of them
// loses one, an idle one if it has any, else its oldest. A group is a remote address (of IPv6 the
// network of 64 bits) among anonymous connections and a workspace among known ones.
package inbound
