package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const workspaceNames = "WORKSPACE-NAMES"

// WorkspaceName reserves a workspace's name. All names share a partition, so that the list of
// workspaces is one consistent read.
func WorkspaceName(name string) table.Key { return table.Key{PK: workspaceNames, SK: name} }

// WorkspaceNames asks for all workspaces, by name.
func WorkspaceNames() table.Query { return table.Query{PK: workspaceNames} }

// Member is the key of a membership. Its id stands for the user.
func Member(workspace, id string) table.Key { return table.Key{PK: Members(workspace).PK, SK: id} }

// Members asks for a workspace's members.
func Members(workspace string) table.Query { return table.Query{PK: "W#" + workspace + "#MEMBERS"} }

// APIKeyRecord is the key of the record of an API key. The API key is looked up under another
// key.
func APIKeyRecord(workspace, id string) table.Key {
	return table.Key{PK: APIKeyRecords(workspace).PK, SK: id}
}

// APIKeyRecords asks for the records of a workspace's API keys, the oldest first.
func APIKeyRecords(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#API-KEYS"}
}

// TrustRule is the key of a trust rule. The workspace trusts the tokens of its rules.
func TrustRule(workspace, id string) table.Key {
	return table.Key{PK: TrustRules(workspace).PK, SK: id}
}

// TrustRules asks for a workspace's trust rules, the oldest first.
func TrustRules(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#TRUST-RULES"}
}

// AuditEntry is the key of an entry of a workspace's audit log. Entry ids sort by time.
func AuditEntry(workspace, id string) table.Key { return table.Key{PK: AuditLog(workspace).PK, SK: id} }

// AuditLog asks for a workspace's audit log, the oldest entry first.
func AuditLog(workspace string) table.Query { return table.Query{PK: "W#" + workspace + "#AUDIT"} }

// Answer is the key of the answer to a request that its client may repeat. The client's own
// key is any text, and becomes a digest here.
func Answer(workspace, idempotencyKey string) table.Key {
	digest := sha256.Sum256([]byte(idempotencyKey))
	return table.Key{PK: "W#" + workspace + "#ANSWER#" + hex.EncodeToString(digest[:]), SK: "ANSWER"}
}

// ParseAnswer reads the workspace back from the key of an answer; ok is false for any other key.
func ParseAnswer(key table.Key) (workspace string, ok bool) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 4 || parts[0] != "W" || parts[2] != "ANSWER" || key.SK != "ANSWER" {
		return "", false
	}
	return parts[1], true
}

// SignInCode is the key under which a browser's code is looked up. hash is the hash of the
// code, never the code.
func SignInCode(hash string) table.Key { return table.Key{PK: "SIGN-IN#" + hash, SK: "CODE"} }

// Session is the key under which a browser's session is looked up. hash is its token's hash,
// never the token.
func Session(hash string) table.Key { return table.Key{PK: "SESSION#" + hash, SK: "SESSION"} }
