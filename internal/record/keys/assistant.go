package keys

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const assistantPrefix = "ASSISTANT#"

// Assistant is the key of an assistant, in the partition that holds all assistants of its
// deployment.
func Assistant(workspace, deployment, assistant string) table.Key {
	return table.Key{PK: AssistantPartition(workspace, deployment).PK, SK: assistantPrefix + assistant}
}

// AssistantID reads an assistant's id back from its key.
func AssistantID(key table.Key) string { return strings.TrimPrefix(key.SK, assistantPrefix) }

// Assistants asks for a deployment's assistants, by id.
func Assistants(workspace, deployment string) table.Query {
	return table.Query{PK: AssistantPartition(workspace, deployment).PK, Prefix: assistantPrefix}
}

// AssistantCount is the key of the count of a deployment's assistants, which is bounded.
func AssistantCount(workspace, deployment string) table.Key {
	return table.Key{PK: AssistantPartition(workspace, deployment).PK, SK: "COUNT"}
}

func assistantVersionPrefix(assistant string) string { return "VERSION#" + assistant + "#" }

// AssistantVersion is the key of a version of an assistant. Numbers count from 1.
func AssistantVersion(workspace, deployment, assistant string, number int64) table.Key {
	return table.Key{PK: AssistantPartition(workspace, deployment).PK, SK: fmt.Sprintf("%s%08d", assistantVersionPrefix(assistant), number)}
}

// AssistantVersions asks for the versions of an assistant, newest first.
func AssistantVersions(workspace, deployment, assistant string) table.Query {
	return table.Query{PK: AssistantPartition(workspace, deployment).PK, Prefix: assistantVersionPrefix(assistant), Reverse: true}
}

// AssistantPartition asks for all items of a deployment's assistants.
func AssistantPartition(workspace, deployment string) table.Query {
	return table.Query{PK: deploymentPK(workspace, deployment) + "#ASSISTANTS"}
}

// AssistantVersionNumber reads the number back from a version's key.
func AssistantVersionNumber(key table.Key) (int64, error) {
	number, err := strconv.ParseInt(key.SK[strings.LastIndexByte(key.SK, '#')+1:], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("key %v is not a version's: %w", key, err)
	}
	return number, nil
}
