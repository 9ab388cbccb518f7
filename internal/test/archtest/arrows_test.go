package archtest_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// layer is what a package is for, which decides what it may import.
type layer string

const (
	base     layer = "base"     // words that everything uses
	contract layer = "contract" // documents that become part of a binary
	seam     layer = "seam"     // an interface between logic and technology
	storage  layer = "storage"  // how the domain keeps its records, over table.Table
	domain   layer = "domain"   // the rules, written once
	adapter  layer = "adapter"  // one technology behind a seam
	manners  layer = "manners"  // what all HTTP handlers share
	handlers layer = "handlers" // the interfaces
	assembly layer = "assembly" // what puts all of them together, and programs that use the result
	fortests layer = "fortests" // imported by tests only, which may import anything
)

// layers says which layer a package is in by the folder that it lies in: the longest folder counts.
// A folder that ends in "/*" means the packages directly in it, not what is below them.
var layers = map[string]layer{
	"infra/openapi":           contract,
	"infra/runtimes":          contract,
	"infra/statemachines":     contract,
	"functions":               assembly,
	"internal/base":           base,
	"internal/base/child":     adapter,
	"internal/seam":           adapter,
	"internal/seam/*":         seam,
	"internal/seam/wire":      adapter,
	"internal/record":         storage,
	"internal/tenant":         domain,
	"internal/control":        domain,
	"internal/agent":          domain,
	"internal/jobs":           domain,
	"internal/api":            handlers,
	"internal/api/auth":       manners,
	"internal/api/metrics":    manners,
	"internal/api/web":        manners,
	"internal/host":           assembly,
	"internal/host/agenthost": handlers,
	"internal/cmd":            assembly,
	"internal/test":           fortests,
	"internal/test/e2e":       assembly,
	"internal/test/emulator":  assembly,
	"internal/test/template":  base, // it also makes the functions' packages
}

// mayImport are the layers that a layer may import.
var mayImport = map[layer][]layer{
	base:     {base},
	contract: {},
	seam:     {base},
	storage:  {base, seam},
	domain:   {base, seam, storage, domain},
	adapter:  {base},
	manners:  {base},
	handlers: {base, contract, seam, domain, manners},
	assembly: {base, contract, seam, storage, domain, adapter, manners, handlers, assembly},
	fortests: {base, seam},
}

// exceptions are further arrows, each with its reason. An adapter may import the seam that it is
// below, because it implements it.
var exceptions = map[string]string{
	"internal/host/agenthost -> internal/seam/wire":                            "what host and clients agree on",
	"internal/seam/wire -> internal/seam/compute":                              "ends of agents are sent as they are",
	"internal/seam/wire -> internal/seam/revisionlog":                          "parts of logs are sent as they are",
	"internal/seam/wire -> internal/seam/upload":                               "uploads are named as they are",
	"internal/seam/graph/graphtest -> internal/agent/state":                    "an agent that holds values applies patches of them",
	"internal/seam/upload/remote -> internal/seam/wire":                        "what host and clients agree on",
	"internal/seam/upload/files -> internal/seam/secret":                       "addresses are signed",
	"internal/seam/build/codebuild -> internal/seam/upload":                    "what is uploaded takes the place of a repository",
	"internal/seam/build/local -> internal/seam/upload":                        "what is uploaded takes the place of a repository",
	"internal/seam/build/local -> internal/seam/build/archive":                 "one way to unpack, two builders",
	"internal/seam/revisionlog/remote -> internal/seam/wire":                   "what host and clients agree on",
	"internal/seam/build/codebuild -> internal/record/keys":                    "only keys builds the text of keys",
	"internal/seam/build/codebuild -> internal/seam/table":                     "the id of a revision's build is noted",
	"internal/seam/build/remote -> internal/seam/wire":                         "what host and clients agree on",
	"internal/seam/compute/ecs -> internal/seam/secret":                        "invoke tokens are derived",
	"internal/seam/compute/ecs -> internal/seam/compute/ecs/pod":               "what a task can be, apart from the SDKs",
	"internal/seam/compute/remote -> internal/seam/wire":                       "what host and clients agree on",
	"internal/seam/compute/remote -> internal/seam/secret":                     "invoke tokens are derived",
	"internal/seam/registry/files -> internal/seam/secret":                     "tokens are signed",
	"internal/seam/secret/keyfile -> internal/seam/secret/envelope":            "one format, two places for keys",
	"internal/seam/secret/kms -> internal/seam/secret/envelope":                "one format, two places for keys",
	"internal/seam/secret/kms -> internal/seam/table":                          "wrapped keys lie in the table",
	"internal/seam/secret/kms -> internal/record/keys":                         "only keys builds the text of keys",
	"internal/seam/compute -> internal/seam/build":                             "a release is what a build made",
	"internal/seam/graph -> internal/seam/compute":                             "an agent is invoked where its release answers",
	"internal/api/auth -> internal/tenant/apikey":                              "credentials are checked against the keys of a workspace",
	"internal/api/agentserver -> internal/record/record":                       "answers are encoded as records are",
	"internal/seam/build/dockerfile -> infra/runtimes":                         "the runtimes travel in the binary",
	"internal/seam/build/dockerfile -> internal/seam/build/framework":          "a repository is read in one way",
	"internal/seam/build/docker -> internal/seam/build/dockerfile":             "one Dockerfile, two builders",
	"internal/seam/build/local -> internal/seam/build/dockerfile":              "one Dockerfile, two builders",
	"internal/seam/build/local -> internal/seam/build/framework":               "a repository is read in one way",
	"internal/seam/build/local -> internal/seam/build/repository":              "one set of rules about repositories, two builders",
	"internal/seam/build/codebuild -> internal/seam/build/repository":          "one set of rules about repositories, two builders",
	"internal/seam/build/local -> infra/runtimes":                              "the runtimes travel in the binary",
	"internal/seam/build/local -> internal/base/child":                         "builds are processes",
	"internal/seam/build/local -> internal/seam/revisionlog":                   "a build's output belongs to its revision",
	"internal/seam/build/local -> internal/seam/revisionlog/files":             "a build's output belongs to its revision",
	"internal/seam/compute/docker -> internal/seam/compute/replica":            "replicas are kept in one way",
	"internal/seam/compute/process -> internal/seam/compute/replica":           "replicas are kept in one way",
	"internal/seam/compute/docker -> internal/seam/revisionlog":                "an agent's output belongs to its revision",
	"internal/seam/compute/docker -> internal/seam/revisionlog/files":          "an agent's output belongs to its revision",
	"internal/seam/compute/process -> internal/base/child":                     "agents are processes",
	"internal/seam/compute/process -> internal/seam/revisionlog":               "an agent's output belongs to its revision",
	"internal/seam/compute/process -> internal/seam/revisionlog/files":         "an agent's output belongs to its revision",
	"internal/seam/table/testtable -> internal/test/fixtures":                  "the table of a test is one that exists",
	"internal/seam/table/testtable -> internal/seam/table/sqlite":              "a table takes options",
	"internal/test/fixtures -> internal/seam/table/sqlite":                     "the table of a test is one that exists",
	"internal/seam/build/buildtest -> internal/base/child/childtest":           "users of workspaces clone the repository of a test",
	"internal/control/integration/githubtest -> internal/base/child/childtest": "users of workspaces read the certificate of a test",
	"internal/seam/workflow/local -> internal/seam/workflow/local/asl":         "the language, apart from the engine",
	"internal/seam/workflow/local -> internal/seam/table":                      "executions outlive the process",
	"internal/seam/workflow/local -> internal/record/keys":                     "only keys builds the text of keys",
}

// speakHTTP are the packages below the manners that may import net/http.
var speakHTTP = map[string]string{
	"internal/seam/graph":              "the one seam that speaks HTTP: the container contract",
	"internal/seam/graph/graphtest":    "an agent of that contract",
	"internal/seam/compute/process":    "asks agents whether they are healthy",
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

// modules says which packages, or which layers, may import a module, so that a new dependency shows
// in a review.
var modules = map[string][]string{
	"cuelabs.dev/go/oci":                             {"internal/seam/registry/files"},
	"github.com/aws":                                 {string(adapter), string(assembly)},
	"github.com/awslabs":                             {"internal/host/lambdahost"},
	"github.com/BurntSushi/toml":                     {"internal/seam/build/framework"},
	"github.com/coreos/go-oidc":                      {"internal/api/oidc"},
	"github.com/fsnotify/fsnotify":                   {"internal/cmd/cli"},
	"github.com/go-jose/go-jose":                     {"internal/api/oidc", "internal/api/oidc/oidctest"},
	"github.com/go-oauth2/oauth2":                    {"internal/tenant/authservice/oauthtest"},
	"github.com/golang-jwt/jwt":                      {"internal/control/integration", "internal/control/integration/githubtest"},
	"github.com/google/go-github":                    {"internal/control/integration"},
	"github.com/google/go-cmp":                       {"internal/seam/build/buildtest", "internal/seam/table/tabletest"},
	"github.com/google/uuid":                         {"internal/base/id", "internal/api/agentserver", "internal/agent/assistant"},
	"github.com/oapi-codegen/nullable":               {"internal/api/agentserver", "internal/api/controlplane"},
	"github.com/oapi-codegen/runtime":                {"internal/api/agentserver", "internal/api/controlplane"},
	"github.com/santhosh-tekuri/jsonschema":          {"internal/api/web"},
	"github.com/standard-webhooks/standard-webhooks": {"internal/tenant/webhook"},
	"github.com/spf13/cobra":                         {"internal/cmd/cli", "internal/cmd/exit", "internal/cmd/local", "internal/cmd/output", "internal/cmd/slipway", "internal/cmd/slipway-local"},
	"github.com/spf13/pflag":                         {"internal/cmd/slipway"},
	"golang.org/x/oauth2":                            {"internal/tenant/authservice", "internal/control/integration"},
	"golang.org/x/sync":                              {"internal/api/agentserver", "internal/tenant/authservice", "internal/cmd/bench", "internal/seam/compute/docker", "internal/cmd/demo", "internal/control/integration", "internal/control/push", "internal/agent/store", "internal/tenant/workspacesecret"},
	"golang.org/x/time":                              {"internal/api/web"},
	"golang.org/x/term":                              {"internal/cmd/cli", "internal/cmd/output"},
	"github.com/containerd/errdefs":                  {"internal/seam/build/docker", "internal/seam/compute/docker"},
	"github.com/docker/go-units":                     {"internal/base/disk", "internal/cmd/slipway"},
	"github.com/distribution/reference":              {"internal/seam/compute/docker", "internal/control/deployment"},
	"github.com/opencontainers":                      {"internal/seam/registry/files"},
	"github.com/moby/moby":                           {"internal/seam/build/docker", "internal/seam/compute/docker"},
	"github.com/cli/browser":                         {"internal/cmd/cli"},
	"github.com/swaggest/swgui":                      {"internal/api/docs"},
	"github.com/prometheus":                          {"internal/api/metrics"},
	"github.com/robfig/cron":                         {"internal/agent/cron"},
	"golang.org/x/sys":                               {"internal/base/child"},
	"gopkg.in/yaml.v3":                               {"internal/test/template"},
	"zombiezen.com/go/sqlite":                        {"internal/seam/table/sqlite"},
}

func TestEveryPackageHasALayerAndAComment(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, p := range packages(t) {
		known[p.path] = true
		if layerOf(p.path) == "" {
			t.Errorf("%s is in no layer: name it in layers", p.path)
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.path)
		}
	}
	for folder := range layers {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(name string) bool { return inFolder(name, folder) }) {
			t.Errorf("%s is in layers, but there is no package in it", folder)
		}
	}
}

func TestArrows(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range packages(t) {
		for _, imported := range p.own {
			arrow := p.path + " -> " + imported
			from, to := layerOf(p.path), layerOf(imported)
			switch {
			case exceptions[arrow] != "":
				used[arrow] = true
			case from == adapter && path.Dir(p.path) == imported:
			case !slices.Contains(mayImport[from], to):
				t.Errorf("%s: %s may not import %s", arrow, from, to)
			}
		}
	}
	for arrow := range exceptions {
		if !used[arrow] {
			t.Errorf("%s is an exception that nobody needs", arrow)
		}
	}
}

func TestForeignImports(t *testing.T) {
	t.Parallel()
	quiet := []layer{base, contract, seam, storage, domain, adapter}
	for _, p := range packages(t) {
		for _, imported := range p.foreign {
			if err := checkForeign(p.path, imported, quiet); err != nil {
				t.Error(err)
			}
		}
	}
}

func checkForeign(importer, imported string, quiet []layer) error {
	if imported == "net/http" || strings.HasPrefix(imported, "net/http/") {
		if slices.Contains(quiet, layerOf(importer)) && speakHTTP[importer] == "" {
			return fmt.Errorf("%s imports %s: HTTP is for handlers", importer, imported)
		}
		return nil
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return nil // the standard library
	}
	for module, importers := range modules {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			if slices.Contains(importers, importer) || slices.Contains(importers, string(layerOf(importer))) {
				return nil
			}
			return fmt.Errorf("%s imports %s, which only %v may", importer, imported, importers)
		}
	}
	return fmt.Errorf("%s imports %s: name the module in modules", importer, imported)
}

// layerOf is the layer of a package. A package whose name ends in "test" is for tests, wherever it
// lies.
func layerOf(name string) layer {
	if strings.HasSuffix(name, "test") || forTests[name] != "" {
		return fortests
	}
	longest := ""
	for folder := range layers {
		if inFolder(name, folder) && len(folder) > len(longest) {
			longest = folder
		}
	}
	return layers[longest]
}

// forTests are the packages for tests whose names do not end in "test", each with what it is.
var forTests = map[string]string{
	"internal/seam/table/testtable":   "a table that a test opens",
	"internal/seam/table/dynamo/cost": "what the requests of a test cost",
}

// inFolder reports whether a package lies in a folder of layers.
func inFolder(name, folder string) bool {
	if parent, only := strings.CutSuffix(folder, "/*"); only {
		return path.Dir(name) == parent
	}
	return name == folder || strings.HasPrefix(name, folder+"/")
}
