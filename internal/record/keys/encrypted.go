package keys

import (
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const encryptedPK = "ENCRYPTED"

// Encrypted is the key of the note that a deployment's repository encrypts what its agent server
// stores.
func Encrypted(workspace, deployment string) table.Key {
	return table.Key{PK: encryptedPK, SK: workspace + "#" + deployment}
}

// AllEncrypted asks for the notes of all deployments.
func AllEncrypted() table.Query { return table.Query{PK: encryptedPK} }

// DeploymentParts are the ids in the key of anything that belongs to a deployment.
type DeploymentParts struct{ Workspace, Deployment string }

// ParseEncrypted reads the ids back from the key of a note; ok is false for any other key.
func ParseEncrypted(key table.Key) (_ DeploymentParts, ok bool) {
	workspace, deployment, found := strings.Cut(key.SK, "#")
	return DeploymentParts{workspace, deployment}, found && key.PK == encryptedPK
}

// Part is a part of the data of a deployment's agent server.
type Part string

// Parts whose items hold data of clients and of agents.
const (
	OfThread     Part = "T"
	OfAssistants Part = "ASSISTANTS"
	OfCrons      Part = "CRONS"
	OfStore      Part = "STORE"
)

// ParsePart reads back which part of which deployment's agent server an item belongs to. ok is
// false for all other items.
func ParsePart(key table.Key) (_ DeploymentParts, part Part, ok bool) {
	parts := strings.SplitN(key.PK, "#", 6)
	if len(parts) < 5 || parts[0] != "W" || parts[2] != "D" {
		return DeploymentParts{}, "", false
	}
	switch part = Part(parts[4]); part {
	case OfThread, OfAssistants, OfCrons, OfStore:
		return DeploymentParts{parts[1], parts[3]}, part, true
	default:
		return DeploymentParts{}, "", false
	}
}

// ThreadOf is the key of the thread in whose partition an item lies.
func ThreadOf(key table.Key) (table.Key, error) {
	parts, err := ParseThread(key)
	if err != nil {
		return table.Key{}, fmt.Errorf("key %v lies in no thread: %w", key, err)
	}
	return Thread(parts.Workspace, parts.Deployment, parts.Thread), nil
}
