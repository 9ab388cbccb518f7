package keys

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// The items of an agent server's store lie in a partition for each first label of their
// namespaces, so that a deployment is not limited to the write rate of one partition. Labels
// are escaped and each ends with "/", so that everything below a namespace has one prefix. The
// key comes behind "#", which no escaped text holds.

func storePK(workspace, deployment, first string) string {
	return deploymentPK(workspace, deployment) + "#STORE#" + url.QueryEscape(first)
}

const (
	storeItemPrefix      = "I#"
	storeVectorsPrefix   = "V#"
	storeNamespacePrefix = "N#"
)

func storePath(labels []string) string {
	var path strings.Builder
	for _, label := range labels {
		path.WriteString(url.QueryEscape(label))
		path.WriteByte('/')
	}
	return path.String()
}

// StoreItem is the key of an item of the store. A namespace has at least one label.
func StoreItem(workspace, deployment string, namespace []string, key string) table.Key {
	return table.Key{
		PK: storePK(workspace, deployment, namespace[0]), SK: storeItemPrefix + storePath(namespace) + "#" + url.QueryEscape(key),
	}
}

// ParseStoreItem reads the namespace and the key of an item back.
func ParseStoreItem(key table.Key) (namespace []string, itemKey string, err error) {
	path, last, ok := strings.Cut(strings.TrimPrefix(key.SK, storeItemPrefix), "#")
	if !ok || !strings.HasPrefix(key.SK, storeItemPrefix) {
		return nil, "", fmt.Errorf("key %v is not a store item's", key)
	}
	if namespace, err = ParseStorePath(path); err != nil {
		return nil, "", err
	}
	if itemKey, err = url.QueryUnescape(last); err != nil {
		return nil, "", fmt.Errorf("key %v is not a store item's: %w", key, err)
	}
	return namespace, itemKey, nil
}

// StoreVectors is the key of the vectors of an item, given the item's own key. The order of
// vectors is the order of their items.
func StoreVectors(item table.Key) table.Key {
	return table.Key{PK: item.PK, SK: storeVectorsPrefix + strings.TrimPrefix(item.SK, storeItemPrefix)}
}

// StoreItemWith is the key of the item that has vectors under a key.
func StoreItemWith(vectors table.Key) table.Key {
	return table.Key{PK: vectors.PK, SK: storeItemPrefix + strings.TrimPrefix(vectors.SK, storeVectorsPrefix)}
}

// StoreVectorsBetween asks for the vectors of two items of one partition, and of all items
// between them.
func StoreVectorsBetween(first, last table.Key) table.Query {
	return table.Query{PK: first.PK, From: StoreVectors(first).SK, To: StoreVectors(last).SK}
}

// ParseStorePath reads a namespace back from the sort key of its entry in the list.
func ParseStorePath(path string) ([]string, error) {
	parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i, part := range parts {
		label, err := url.QueryUnescape(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not the path of a namespace: %w", path, err)
		}
		parts[i] = label
	}
	return parts, nil
}

// StoreItemsBelow asks for the items of a namespace and of all namespaces below it, by
// namespace and key.
func StoreItemsBelow(workspace, deployment string, namespace []string) table.Query {
	return table.Query{PK: storePK(workspace, deployment, namespace[0]), Prefix: storeItemPrefix + storePath(namespace)}
}

// StoreItemsOf asks for the items of one namespace, by key.
func StoreItemsOf(workspace, deployment string, namespace []string) table.Query {
	return table.Query{PK: storePK(workspace, deployment, namespace[0]), Prefix: storeItemPrefix + storePath(namespace) + "#"}
}

// StoreNamespace is the key of the note that a namespace has items.
func StoreNamespace(workspace, deployment string, namespace []string) table.Key {
	return table.Key{PK: storePK(workspace, deployment, namespace[0]), SK: storeNamespacePrefix + storePath(namespace)}
}

// StoreNamespaceEntry places a namespace in the list of its deployment's namespaces. It is
// written when the namespace gets its first item.
func StoreNamespaceEntry(workspace, deployment string, namespace []string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + "#STORE", SK: storePath(namespace)}
}

// StoreNamespaces asks for a deployment's namespaces that begin with the labels of prefix,
// which may be empty.
func StoreNamespaces(workspace, deployment string, prefix []string) table.Query {
	return table.Query{Index: table.ByList, PK: deploymentPK(workspace, deployment) + "#STORE", Prefix: storePath(prefix)}
}

// StoreNamespacesAfter asks for a deployment's namespaces behind all that begin with a first
// label.
func StoreNamespacesAfter(workspace, deployment, first string) table.Query {
	query := StoreNamespaces(workspace, deployment, nil)
	if first != "" {
		query.From = url.QueryEscape(first) + "0" // the character after "/"
	}
	return query
}

// StorePartition asks for everything below a first label: the items, the vectors, and at last the
// notes by which the partition is found.
func StorePartition(workspace, deployment, first string) []table.Query {
	pk := storePK(workspace, deployment, first)
	return []table.Query{{PK: pk, Prefix: storeItemPrefix}, {PK: pk, Prefix: storeVectorsPrefix}, {PK: pk, Prefix: storeNamespacePrefix}}
}
