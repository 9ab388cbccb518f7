package archtest_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// exceptions are the imports against the order of the folders, or of an adapter, each with its
// reason. A folder after the arrow stands for all packages in it.
var exceptions = map[string]string{
	"internal/seam/build/codebuild -> internal/record/keys":            "only keys builds the text of keys",
	"internal/seam/secret/kms -> internal/record/keys":                 "only keys builds the text of keys",
	"internal/seam/workflow/local -> internal/record/keys":             "only keys builds the text of keys",
	"internal/seam/build/local -> internal/seam/revisionlog/files":     "the output of a build goes to its revision's file",
	"internal/seam/compute/docker -> internal/seam/revisionlog/files":  "the output of an agent goes to its revision's file",
	"internal/seam/compute/process -> internal/seam/revisionlog/files": "the output of an agent goes to its revision's file",
	"internal/cmd/slipway-local -> internal/test/emulator":             "it is the emulators as a program",
	"internal/cmd/slipway-local -> internal/test/template":             "it serves template.yaml",
	"internal/cmd/bench -> internal/test/template":                     "it builds the functions of template.yaml",
}

// speakHTTP are the packages in the folders above api that may import net/http.
var speakHTTP = map[string]string{
	"internal/seam/graph":              "the one seam that speaks HTTP: the container contract",
	"internal/seam/compute/replica":    "asks agents whether they are healthy",
	"internal/seam/registry/files":     "serves images to container engines, by a library that speaks their protocol",
	"internal/seam/revisionlog/remote": "speaks to an agent host",
	"internal/seam/wire":               "speaks to an agent host",
	"internal/seam/compute/remote":     "speaks to an agent host",
	"internal/seam/build/remote":       "speaks to an agent host",
	"internal/seam/upload/remote":      "speaks to an agent host",
	"internal/seam/upload/files":       "takes what is uploaded, from whoever has a signed address",
	"internal/control/integration":     "speaks to GitHub",
	"internal/base/inbound":            "watches the connections of the server",
	"internal/base/outbound":           "the client for addresses that users name",
	"internal/tenant/webhook":          "tells the addresses that workspaces name",
	"internal/tenant/authservice":      "asks OAuth providers for tokens, and MCP servers for their providers",
}

// adapters stands for all packages below a seam, in modules.
const adapters = "adapters"

// modules lists the packages that may import a module, so that a new dependency is visible in
// a review. A folder stands for all packages in it.
var modules = map[string][]string{
	"cuelabs.dev/go/oci":           {"internal/seam/registry/files"},
	"github.com/aws":               {adapters, "internal/host/lambdahost", "internal/host/stack", "internal/cmd/slipway", "internal/cmd/slipway-local", "internal/test/emulator"},
	"github.com/a2aproject/a2a-go": {"internal/api/agentserver"},
	"github.com/awslabs":           {"internal/host/lambdahost"},
	"github.com/BurntSushi/toml":   {"internal/seam/build/framework"},
	// The standard library has no WebSocket.
	"github.com/coder/websocket":                     {"internal/api/web"},
	"github.com/coreos/go-oidc":                      {"internal/api/oidc"},
	"github.com/fsnotify/fsnotify":                   {"internal/cmd/cli"},
	"github.com/go-jose/go-jose":                     {"internal/api/oidc", "internal/api/oidc/oidctest"},
	"github.com/go-oauth2/oauth2":                    {"internal/tenant/authservice/oauthtest"},
	"github.com/golang-jwt/jwt":                      {"internal/control/integration", "internal/control/integration/githubtest"},
	"github.com/google/go-github":                    {"internal/control/integration"},
	"github.com/google/go-cmp":                       {"internal/seam/build/buildtest", "internal/seam/table/tabletest"},
	"github.com/google/uuid":                         {"internal/base/id", "internal/api/agentserver", "internal/agent/assistant"},
	"github.com/modelcontextprotocol/go-sdk":         {"internal/api/agentserver"},
	"github.com/oapi-codegen/nullable":               {"internal/api/agentserver", "internal/api/controlplane"},
	"github.com/oapi-codegen/runtime":                {"internal/api/agentserver", "internal/api/controlplane"},
	"github.com/santhosh-tekuri/jsonschema":          {"internal/api/web"},
	"github.com/standard-webhooks/standard-webhooks": {"internal/tenant/webhook"},
	"github.com/spf13/cobra":                         {"internal/cmd/cli", "internal/cmd/exit", "internal/cmd/local", "internal/cmd/output", "internal/cmd/slipway", "internal/cmd/slipway-local"},
	// net/http takes twice the processor time, which the measured server would lack.
	"github.com/valyala/fasthttp": {"internal/cmd/bench"},
	"github.com/spf13/pflag":      {"internal/cmd/slipway"},
	"gopkg.in/ini.v1":             {"internal/seam/build/framework"},
	"golang.org/x/crypto":         {"internal/host/standalone"},
	// The package knows which names and values headers may have.
	"golang.org/x/net":                  {"internal/api/agentserver", "internal/seam/build", "internal/seam/build/framework"},
	"golang.org/x/oauth2":               {"internal/tenant/authservice", "internal/control/integration", "internal/api/oidc", "internal/cmd/cli"},
	"golang.org/x/sync":                 {"internal/base/turn", "internal/api/agentserver", "internal/tenant/apikey", "internal/tenant/authservice", "internal/cmd/bench", "internal/seam/compute/docker", "internal/cmd/demo", "internal/control/integration", "internal/control/push", "internal/agent/store", "internal/tenant/workspacesecret", "internal/seam/workflow/local", "internal/seam/table/dynamo"},
	"golang.org/x/time":                 {"internal/api/web", "internal/test/emulator/apigateway"},
	"golang.org/x/term":                 {"internal/cmd/cli", "internal/cmd/output"},
	"github.com/containerd/errdefs":     {"internal/seam/build/docker", "internal/seam/compute/docker"},
	"github.com/docker/go-units":        {"internal/base/disk", "internal/cmd/slipway"},
	"github.com/distribution/reference": {"internal/seam/compute/docker", "internal/control/deployment"},
	"github.com/opencontainers":         {"internal/seam/registry/files"},
	"github.com/moby/moby":              {"internal/seam/build/docker", "internal/seam/compute/docker"},
	"github.com/cli/browser":            {"internal/cmd/cli"},
	"github.com/mattn/go-runewidth":     {"internal/cmd/cli"},
	"github.com/swaggest/swgui":         {"internal/api/docs"},
	"github.com/prometheus":             {"internal/api/metrics", "internal/cmd/bench"},
	"github.com/robfig/cron":            {"internal/agent/cron"},
	"golang.org/x/sys":                  {"internal/base/child", "internal/base/disk"},
	"github.com/zalando/go-keyring":     {"internal/cmd/cli"},
	"gopkg.in/yaml.v3":                  {"internal/test/template"},
	"zombiezen.com/go/sqlite":           {"internal/seam/table/sqlite"},
}

// forTests are the packages for tests whose names do not end in "test", each with a
// description.
var forTests = map[string]string{
	"internal/seam/table/dynamo/cost": "what the requests of a test cost",
}

// row is a row of the table of folders in ARCHITECTURE.md.
type row struct {
	folder   string
	packages []string
}

var rows = sync.OnceValues(func() ([]row, error) {
	text, err := os.ReadFile(filepath.Join(top, "internal", "ARCHITECTURE.md"))
	if err != nil {
		return nil, err
	}
	_, section, ok := strings.Cut(string(text), "\n## The folders, in reading order\n")
	_, table, head := strings.Cut(section, "\n|---|---|---|\n")
	table, _, end := strings.Cut(table, "\n\n")
	if !ok || !head || !end {
		return nil, fmt.Errorf("ARCHITECTURE.md has no table of the folders")
	}
	var all []row
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			return nil, fmt.Errorf("a row of the table of folders has not three cells: %s", line)
		}
		all = append(all, row{strings.Trim(cells[1], " `"), strings.Fields(strings.ReplaceAll(cells[3], "`", ""))})
	}
	return all, nil
})

// folderTable is the table of the folders of internal, in its order.
func folderTable(t *testing.T) []row {
	t.Helper()
	all, err := rows()
	check.Must(t, err)
	return all
}

// folderOf returns the folder of internal to which a package belongs. A package for tests
// belongs to test, in any folder. The documents in infra become part of binaries and belong to
// no folder.
func folderOf(name string) string {
	parts := strings.Split(name, "/")
	switch {
	case strings.HasSuffix(name, "test") || forTests[name] != "":
		return "test"
	case parts[0] == "functions":
		return "cmd"
	case parts[0] == "internal":
		return parts[1]
	}
	return ""
}

// isAdapter reports whether a package is below a seam.
func isAdapter(name string) bool { return folderOf(name) == "seam" && seamOf(name) != name }

// seamOf returns the seam to which a package of the folder seam belongs.
func seamOf(name string) string { return path.Join(strings.Split(name, "/")[:3]...) }

func TestTheTableOfFoldersIsComplete(t *testing.T) {
	t.Parallel()
	found := map[string]map[string]bool{}
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.path)
		}
		parts := strings.Split(p.path, "/")
		if parts[0] != "internal" {
			continue
		}
		if found[parts[1]] == nil {
			found[parts[1]] = map[string]bool{}
		}
		found[parts[1]][parts[2]] = true
	}
	for _, row := range folderTable(t) {
		for _, name := range row.packages {
			if !found[row.folder][name] {
				t.Errorf("ARCHITECTURE.md names the package %s in %s, which is not there", name, row.folder)
			}
			delete(found[row.folder], name)
		}
		for name := range found[row.folder] {
			t.Errorf("ARCHITECTURE.md does not name the package %s in %s", name, row.folder)
		}
		delete(found, row.folder)
	}
	for folder := range found {
		t.Errorf("ARCHITECTURE.md does not name the folder %s", folder)
	}
}

// TestArrows checks two rules. A package imports packages of its own folder and of the folders
// above it in the table. Only the other packages of a seam, and the packages that assemble
// programs, import the seam's adapters.
func TestArrows(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, imported := range p.own {
			broken := brokenRule(folderTable(t), p.path, imported)
			if broken == "" {
				continue
			}
			if exception := exceptionFor(p.path, imported); exception != "" {
				used[exception] = true
				continue
			}
			t.Errorf("%s -> %s: %s", p.path, imported, broken)
		}
	}
	for arrow := range exceptions {
		if !used[arrow] {
			t.Errorf("%s is an exception that nothing needs: take it off the list", arrow)
		}
	}
}

// brokenRule returns the rule that an import breaks, or "" if it breaks no rule.
func brokenRule(order []row, importer, imported string) string {
	rank := func(name string) int {
		// The folder infra is above all others.
		return slices.IndexFunc(order, func(r row) bool { return r.folder == folderOf(name) })
	}
	switch {
	case rank(imported) > rank(importer):
		return fmt.Sprintf("%s is below %s in the table of folders", folderOf(imported), folderOf(importer))
	case isAdapter(imported) && !assembles(importer) && (folderOf(importer) != "seam" || seamOf(importer) != seamOf(imported)):
		return "an adapter is for its own seam, host, cmd and test"
	}
	return ""
}

// assembles reports whether a package assembles programs.
func assembles(name string) bool {
	return slices.Contains([]string{"host", "cmd", "test"}, folderOf(name))
}

// exceptionFor returns the exception that allows an import, or "" if there is no exception.
func exceptionFor(importer, imported string) string {
	for arrow := range exceptions {
		from, to, _ := strings.Cut(arrow, " -> ")
		if from == importer && inFolder(imported, to) {
			return arrow
		}
	}
	return ""
}

func TestForeignImports(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, imported := range p.foreign {
			if err := checkForeign(p.path, imported); err != nil {
				t.Error(err)
			}
			used[p.path] = used[p.path] || isHTTP(imported)
		}
	}
	for name := range speakHTTP {
		if !used[name] {
			t.Errorf("%s does not import net/http any more: take it off the list", name)
		}
	}
}

func isHTTP(imported string) bool {
	return imported == "net/http" || strings.HasPrefix(imported, "net/http/")
}

func checkForeign(importer, imported string) error {
	if isHTTP(imported) {
		if folderOf(importer) != "api" && !assembles(importer) && speakHTTP[importer] == "" {
			return fmt.Errorf("%s imports %s: HTTP is for handlers", importer, imported)
		}
		return nil
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return nil // the standard library
	}
	for module, importers := range modules {
		if inFolder(imported, module) {
			if slices.ContainsFunc(importers, func(allowed string) bool {
				return inFolder(importer, allowed) || (allowed == adapters && isAdapter(importer))
			}) {
				return nil
			}
			return fmt.Errorf("%s imports %s, which only %v may", importer, imported, importers)
		}
	}
	return fmt.Errorf("%s imports %s: name the module in modules", importer, imported)
}

// inFolder reports whether a package is the given package, or is below it.
func inFolder(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
