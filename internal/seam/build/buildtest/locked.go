package buildtest

// Locked is a repository with the lock file of a package manager.
type Locked struct {
	Files map[string]string
	// ConfigPath is the ConfigPath of build.Spec. Installs is the beginning of the URL of the
	// package that the lock file names.
	ConfigPath, Installs string
}

// isNumber is the digest of the only package of the JavaScript repositories.
const isNumber = "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng=="

// Locks are repositories by the name of their package manager. The JavaScript repositories
// have their agent in a subdirectory.
var Locks = map[string]Locked{
	"pnpm": javaScript("pnpm-lock.yaml", `lockfileVersion: '9.0'

settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false

importers:

  .:
    dependencies:
      is-number:
        specifier: 7.0.0
        version: 7.0.0

packages:

  is-number@7.0.0:
    resolution: {integrity: `+isNumber+`}
    engines: {node: '>=0.12.0'}

snapshots:

  is-number@7.0.0: {}
`),
	"yarn": javaScript("yarn.lock", "# yarn lockfile v1\n\n\nis-number@7.0.0:\n  version \"7.0.0\"\n  integrity "+isNumber+"\n"),
	"bun": javaScript("bun.lock", `{
  "lockfileVersion": 1,
  "workspaces": {
    "": {
      "name": "a",
      "dependencies": {
        "is-number": "7.0.0",
      },
    },
  },
  "packages": {
    "is-number": ["is-number@7.0.0", "", {}, "`+isNumber+`"],
  }
}
`),
	"npm": javaScript("package-lock.json", `{
  "name": "a", "version": "1.0.0", "lockfileVersion": 3,
  "packages": {
    "": {"name": "a", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}},
    "node_modules/is-number": {"version": "7.0.0", "integrity": "`+isNumber+`"}
  }
}
`),
	// The version is not the newest.
	"uv": {ConfigPath: "framework.json", Installs: "pkg:pypi/idna@3.4", Files: map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "source": {"kind": "uv"}}`, "agent.py": "graph = None\n",
		"pyproject.toml": "[project]\nname = \"agent\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = [\"idna\"]\n[tool.uv]\npackage = false\n",
		"uv.lock": `version = 1
requires-python = ">=3.11"

[[package]]
name = "agent"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "idna" }]

[package.metadata]
requires-dist = [{ name = "idna" }]

[[package]]
name = "idna"
version = "3.4"
source = { registry = "https://pypi.org/simple" }
`,
	}},
}

func javaScript(lock, text string) Locked {
	return Locked{ConfigPath: "agents/one/framework.json", Installs: "pkg:npm/is-number@", Files: map[string]string{
		"agents/one/framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "agents/one/agent.mjs": "export const graph = null",
		"package.json": `{"name": "a", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}}`, lock: text,
	}}
}
