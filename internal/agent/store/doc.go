// Package store is the memory of a deployment's agents beyond threads: JSON objects under a key, in
// namespaces that are paths of labels.
//
// A search shows first what was put last, as the framework's own store does. No index has that
// order: a search reads all items below a namespace, whatever page is asked for, and costs what
// lies there. Without an embedding model a search's query ranks nothing, as in the framework's own
// store.
//
// Each namespace that has items has a marker, which the list of namespaces finds. A put checks that
// the marker is open, or writes it in the same transaction. Who finds a namespace empty closes the
// marker, looks again, and deletes it under the condition that nobody has opened it: a put between
// the two opens it, so no item is ever without one. A marker says whether items of its namespace
// may expire: when all have, it goes as somebody lists it.
package store
