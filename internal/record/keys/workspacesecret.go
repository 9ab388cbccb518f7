package keys

import (
	"fmt"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// WorkspaceSecret is the key of a secret of a workspace, among all secrets of the workspace.
func WorkspaceSecret(workspace, name string) table.Key {
	return table.Key{PK: WorkspaceSecrets(workspace).PK, SK: name}
}

// ParseWorkspaceSecret reads workspace and name back from the key of a secret.
func ParseWorkspaceSecret(key table.Key) (workspace, name string, err error) {
	if workspace, err = WorkspaceOf(key); err != nil || key.PK != WorkspaceSecrets(workspace).PK {
		return "", "", fmt.Errorf("key %v is not that of a secret", key)
	}
	return workspace, key.SK, nil
}

// WorkspaceSecrets asks for a workspace's secrets, by name.
func WorkspaceSecrets(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#SECRETS"}
}

const secretUse = "#SECRET#"

// SecretUse is the key of the note that a deployment has referred to a secret.
func SecretUse(workspace, name, deployment string) table.Key {
	return table.Key{PK: "W#" + workspace + secretUse + name, SK: deployment}
}

// SecretUses asks for the deployments that have referred to a secret, oldest first.
func SecretUses(workspace, name string) table.Query {
	return table.Query{PK: "W#" + workspace + secretUse + name}
}

// SecretUseDeployment reads the deployment back from the key of a use.
func SecretUseDeployment(key table.Key) string { return key.SK }

// SecretUseName reads the secret's name back from the key of a use.
func SecretUseName(key table.Key) string {
	_, name, _ := strings.Cut(key.PK, secretUse)
	return name
}

// SecretUseEntry places a use among the uses of its deployment.
func SecretUseEntry(workspace, deployment, name string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + "#SECRETS", SK: name}
}

// SecretUsesOf asks for the uses of secrets by one deployment.
func SecretUsesOf(workspace, deployment string) table.Query {
	return table.Query{Index: table.ByList, PK: deploymentPK(workspace, deployment) + "#SECRETS"}
}
