package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// GitHubIntegration is the key of a workspace's use of an installation of the GitHub App. Ids sort
// by creation.
func GitHubIntegration(workspace, integration string) table.Key {
	return table.Key{PK: GitHubIntegrations(workspace).PK, SK: integration}
}

// GitHubIntegrations asks for a workspace's installations of the GitHub App, oldest first.
func GitHubIntegrations(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#GITHUB-INTEGRATIONS"}
}

// GitCredential is the key of a workspace's credentials for a git host. Ids sort by creation.
func GitCredential(workspace, integration string) table.Key {
	return table.Key{PK: GitCredentials(workspace).PK, SK: integration}
}

// GitCredentials asks for a workspace's credentials for git hosts, oldest first.
func GitCredentials(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#GIT-CREDENTIALS"}
}

// IntegrationUse is the key of the note that a deployment is cloned with an integration of
// either kind.
func IntegrationUse(workspace, integration, deployment string) table.Key {
	return table.Key{PK: IntegrationUses(workspace, integration).PK, SK: deployment}
}

// IntegrationUses asks for the deployments that are cloned with an integration.
func IntegrationUses(workspace, integration string) table.Query {
	return table.Query{PK: "W#" + workspace + "#INTEGRATION#" + integration + "#USES"}
}

// IntegrationUseDeployment reads the deployment back from the key of a use.
func IntegrationUseDeployment(key table.Key) string { return key.SK }

// InstallRequest is the key of a request to install the GitHub App.
func InstallRequest(workspace, request string) table.Key {
	return table.Key{PK: "W#" + workspace + "#INSTALL-REQUEST#" + request, SK: "REQUEST"}
}

// InstallationBinding binds an installation of the GitHub App to a workspace, once.
func InstallationBinding(workspace string, installation int64) table.Key {
	return table.Key{PK: fmt.Sprintf("W#%s#INSTALLATION#%d", workspace, installation), SK: "BINDING"}
}

// InstallationGate is the key on which the workspaces that bind an installation, and the
// workspace that removes it, take turns.
func InstallationGate(installation int64) table.Key {
	return table.Key{PK: InstallationBindings(installation).PK, SK: "GATE"}
}

// InstallationBindingEntry places a binding among the bindings of its installation: an event
// of GitHub names only the installation.
func InstallationBindingEntry(workspace string, installation int64) table.Key {
	return table.Key{PK: InstallationBindings(installation).PK, SK: workspace}
}

// InstallationBindings asks for the workspaces to which an installation of the GitHub App is
// bound.
func InstallationBindings(installation int64) table.Query {
	return table.Query{Index: table.ByList, PK: fmt.Sprintf("INSTALLATIONS#%d", installation)}
}

// PushWatch is the key of the note that a deployment is built on pushes, in the deployment's
// partition.
func PushWatch(workspace, deployment string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment), SK: "PUSH-WATCH"}
}

// PushWatchEntry places a watch among the watches of a branch of a repository.
func PushWatchEntry(workspace, repository, branch, deployment string) table.Key {
	return table.Key{PK: pushesPK(workspace, repository, branch), SK: deployment}
}

// pushesPK holds a digest of the repository and its branch, because their names may be longer
// than a key and may contain any characters.
func pushesPK(workspace, repository, branch string) string {
	sum := sha256.Sum256([]byte(repository + "\x00" + branch))
	return "W#" + workspace + "#PUSHES#" + hex.EncodeToString(sum[:])
}

// PushWatches asks for a workspace's deployments that are built on pushes to a branch of a
// repository.
func PushWatches(workspace, repository, branch string) table.Query {
	return table.Query{Index: table.ByList, PK: pushesPK(workspace, repository, branch)}
}

// PushDelivery is the key of the note that a delivered push has reached a deployment. The
// sender chose the delivery's id.
func PushDelivery(workspace, deployment, delivery string) table.Key {
	sum := sha256.Sum256([]byte(delivery))
	return table.Key{PK: deploymentPK(workspace, deployment) + "#DELIVERY#" + hex.EncodeToString(sum[:]), SK: "DELIVERY"}
}

// RepositoryNames is the key of the names under which a repository of GitHub was built: a
// repository may be renamed.
func RepositoryNames(workspace string, repository int64) table.Key {
	return table.Key{PK: fmt.Sprintf("W#%s#REPOSITORY#%d", workspace, repository), SK: "NAMES"}
}
