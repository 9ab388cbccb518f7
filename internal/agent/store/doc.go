// Package store is the memory of a deployment's agents beyond threads: JSON objects under a
// key, in namespaces that are paths of labels.
//
// A search shows first the items that were put last, as the framework's own store does. No
// index has that order: a search reads all items below a namespace, even for a small page, and
// its cost depends on the number of these items.
//
// An item may have vectors, which another program has made from its texts. They lie in an item
// of their own, which only searches with a query read, and which is written, renewed and
// removed in the transactions of their item. A search compares the query with the vectors of
// every item below the namespace: the best cosine of an item's vectors is its score. A process
// that holds vectors reads only the items of the page, if there is no filter. Vectors
// belong to a space, which is a model and a number of dimensions. Items that have no vectors
// in the space of the query come last. Without vectors a query ranks nothing, as in the
// framework's own store. A store may bound how many bytes of vectors a query is compared with,
// and refuses the search of a namespace that has more.
//
// Each namespace that has items has a marker, which the list of namespaces finds. A put checks
// that the marker is open, or writes it in the same transaction. A request that finds a
// namespace empty closes the marker and checks the namespace again. It deletes the marker
// under the condition that no other request has opened it: a put between the two steps opens
// the marker, so no item is ever without a marker. A marker says whether items of its
// namespace may expire. If all items have expired, the next list of namespaces removes the
// marker.
package store
