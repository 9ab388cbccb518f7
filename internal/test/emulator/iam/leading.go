package iam

import (
	"encoding/json"
	"regexp"
)

// LeadingKeys is the condition key for the partition of an item, or the partition of an index. A
// request about several partitions is noted as a call for each: all of them must be allowed.
const LeadingKeys = "dynamodb:LeadingKeys"

// value is a text, as DynamoDB's protocol writes it.
type value struct{ S string }

// place is the part of a request that says where an item is.
type place struct{ Key, Item map[string]json.RawMessage }

// partition returns the partition of the item; "" if there is none.
func (p place) partition() string {
	var partition value
	for _, attributes := range []map[string]json.RawMessage{p.Key, p.Item} {
		if text, ok := attributes["pk"]; ok && json.Unmarshal(text, &partition) != nil {
			return ""
		}
	}
	return partition.S
}

// condition matches the beginning of a condition on keys: a partition, which a placeholder names.
var condition = regexp.MustCompile(`^\S+ = (:\w+)`)

// partitions returns the names of the partitions of a batch of reads or writes, or an empty name if
// the batch names no partition.
func partitions(batch json.RawMessage) []string {
	var reads struct{ Keys []map[string]json.RawMessage }
	var writes []map[string]place
	var names []string
	if json.Unmarshal(batch, &reads) == nil {
		for _, key := range reads.Keys {
			names = append(names, place{Key: key}.partition())
		}
	}
	if json.Unmarshal(batch, &writes) == nil {
		for _, write := range writes {
			for _, of := range write {
				names = append(names, of.partition())
			}
		}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names
}

// ids matches the ids and digests in the names of partitions: 16 or more hexadecimal digits
// and hyphens.
var ids = regexp.MustCompile(`[0-9a-f-]{16,}`)

// leading returns the condition keys of a call about a partition. Calls about partitions that
// differ in ids only are noted once.
func leading(partition string) map[string]string {
	if partition == "" {
		return nil
	}
	return map[string]string{LeadingKeys: ids.ReplaceAllString(partition, "0")}
}
