package archtest_test

import (
	"fmt"
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

// layers says which layer each package is in. A package below a seam is an adapter, what is under functions is assembly.
var layers = map[layer][]string{
	base:     {"internal/clock", "internal/fault", "internal/id", "internal/lru", "internal/match", "internal/sse", "internal/template"},
	contract: {"infra/openapi", "infra/runtimes", "infra/statemachines"},
	seam:     {"internal/build", "internal/compute", "internal/graph", "internal/registry", "internal/revisionlog", "internal/secret", "internal/table", "internal/upload", "internal/workflow"},
	storage:  {"internal/keys", "internal/record"},
	domain: {
		"internal/apikey", "internal/assistant", "internal/audit", "internal/authservice", "internal/cron", "internal/deployment", "internal/event", "internal/idempotency", "internal/integration", "internal/listener", "internal/oauthstate",
		"internal/outbound", "internal/push", "internal/reconcile", "internal/reseal", "internal/revision", "internal/rollout", "internal/run", "internal/runner", "internal/state", "internal/store", "internal/thread", "internal/trust",
		"internal/webhook", "internal/workspace", "internal/workspacesecret",
	},
	adapter: {
		"internal/agenthost/wire", "internal/child", "internal/compute/ecs/pod", "internal/compute/replica", "internal/secret/envelope", "internal/workflow/local/asl",
	},
	manners:  {"internal/auth", "internal/metrics", "internal/web"},
	handlers: {"internal/agenthost", "internal/agentserver", "internal/controlplane", "internal/oidc"},
	assembly: {
		"internal/bench", "internal/client", "internal/cmd/slipway", "internal/cmd/slipway-local", "internal/cmd/slipway-recipe", "internal/demo", "internal/e2e", "internal/emulator/apigateway",
		"internal/emulator/awsjson", "internal/emulator/dynamodb", "internal/emulator/dynamodb/with", "internal/emulator/kms", "internal/emulator/lambda", "internal/emulator/sam",
		"internal/emulator/secretsmanager",
		"internal/emulator/stepfunctions", "internal/lambdahost", "internal/stack", "internal/stack/agents", "internal/stack/images", "internal/stack/issuers", "internal/stack/logs", "internal/stack/repositories", "internal/stack/rollouts", "internal/stack/uploads", "internal/standalone",
	},
	fortests: {
		"internal/archtest", "internal/authservice/oauthtest", "internal/build/buildtest", "internal/compute/computetest", "internal/graph/graphtest",
		"internal/integration/githubtest", "internal/mototest", "internal/oidc/oidctest", "internal/registry/registrytest",
		"internal/table/dynamo/cost", "internal/table/tabletest", "internal/table/testtable", "internal/upload/uploadtest", "internal/workflow/workflowtest",
	},
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

// exceptions are further arrows, each with its reason. An adapter may import the seam that it is below, because it implements it.
var exceptions = map[string]string{
	"internal/agenthost -> internal/agenthost/wire":          "what host and clients agree on",
	"internal/agenthost/wire -> internal/compute":            "ends of agents are sent as they are",
	"internal/agenthost/wire -> internal/revisionlog":        "parts of logs are sent as they are",
	"internal/agenthost/wire -> internal/upload":             "uploads are named as they are",
	"internal/graph/graphtest -> internal/state":             "an agent that holds values applies patches of them",
	"internal/upload/remote -> internal/agenthost/wire":      "what host and clients agree on",
	"internal/upload/files -> internal/secret":               "addresses are signed",
	"internal/build/codebuild -> internal/upload":            "what is uploaded takes the place of a repository",
	"internal/build/local -> internal/upload":                "what is uploaded takes the place of a repository",
	"internal/build/local -> internal/build/archive":         "one way to unpack, two builders",
	"internal/revisionlog/remote -> internal/agenthost/wire": "what host and clients agree on",
	"internal/build/codebuild -> internal/keys":              "only keys builds the text of keys",
	"internal/build/codebuild -> internal/table":             "the id of a revision's build is noted",
	"internal/build/remote -> internal/agenthost/wire":       "what host and clients agree on",
	"internal/compute/ecs -> internal/secret":                "invoke tokens are derived",
	"internal/compute/ecs -> internal/compute/ecs/pod":       "what a task can be, apart from the SDKs",
	"internal/compute/remote -> internal/agenthost/wire":     "what host and clients agree on",
	"internal/compute/remote -> internal/secret":             "invoke tokens are derived",
	"internal/registry/files -> internal/secret":             "tokens are signed",
	"internal/secret/keyfile -> internal/secret/envelope":    "one format, two places for keys",
	"internal/secret/kms -> internal/secret/envelope":        "one format, two places for keys",
	"internal/secret/kms -> internal/table":                  "wrapped keys lie in the table",
	"internal/secret/kms -> internal/keys":                   "only keys builds the text of keys",
	"internal/compute -> internal/build":                     "a release is what a build made",
	"internal/graph -> internal/compute":                     "an agent is invoked where its release answers",
	"internal/auth -> internal/apikey":                       "credentials are checked against the keys of a workspace",
	"internal/agentserver -> internal/record":                "answers are encoded as records are",
	"internal/build/dockerfile -> infra/runtimes":            "the runtimes travel in the binary",
	"internal/build/dockerfile -> internal/build/framework":  "a repository is read in one way",
	"internal/build/docker -> internal/build/dockerfile":     "one Dockerfile, two builders",
	"internal/build/local -> internal/build/dockerfile":      "one Dockerfile, two builders",
	"internal/build/local -> internal/build/framework":       "a repository is read in one way",
	"internal/build/local -> internal/build/repository":      "one set of rules about repositories, two builders",
	"internal/build/codebuild -> internal/build/repository":  "one set of rules about repositories, two builders",
	"internal/build/local -> infra/runtimes":                 "the runtimes travel in the binary",
	"internal/build/local -> internal/child":                 "builds are processes",
	"internal/build/local -> internal/revisionlog":           "a build's output belongs to its revision",
	"internal/build/local -> internal/revisionlog/files":     "a build's output belongs to its revision",
	"internal/compute/docker -> internal/compute/replica":    "replicas are kept in one way",
	"internal/compute/process -> internal/compute/replica":   "replicas are kept in one way",
	"internal/compute/docker -> internal/revisionlog":        "an agent's output belongs to its revision",
	"internal/compute/docker -> internal/revisionlog/files":  "an agent's output belongs to its revision",
	"internal/compute/process -> internal/child":             "agents are processes",
	"internal/compute/process -> internal/revisionlog":       "an agent's output belongs to its revision",
	"internal/compute/process -> internal/revisionlog/files": "an agent's output belongs to its revision",
	"internal/table/testtable -> internal/table/sqlite":      "the table of a test is one that exists",
	"internal/workflow/local -> internal/workflow/local/asl": "the language, apart from the engine",
	"internal/workflow/local -> internal/table":              "executions outlive the process",
	"internal/workflow/local -> internal/keys":               "only keys builds the text of keys",
}

// speakHTTP are the packages below the manners that may import net/http.
var speakHTTP = map[string]string{
	"internal/graph":              "the one seam that speaks HTTP: the container contract",
	"internal/graph/graphtest":    "an agent of that contract",
	"internal/compute/process":    "asks agents whether they are healthy",
	"internal/compute/replica":    "asks agents whether they are healthy",
	"internal/registry/files":     "serves images to container engines, by a library that speaks their protocol",
	"internal/revisionlog/remote": "speaks to an agent host",
	"internal/agenthost/wire":     "speaks to an agent host",
	"internal/compute/remote":     "speaks to an agent host",
	"internal/build/remote":       "speaks to an agent host",
	"internal/upload/remote":      "speaks to an agent host",
	"internal/upload/files":       "takes what is uploaded, from whoever has a signed address",
	"internal/integration":        "speaks to GitHub",
	"internal/outbound":           "the client for addresses that users name",
	"internal/webhook":            "tells the addresses that workspaces name",
	"internal/authservice":        "asks OAuth providers for tokens, and MCP servers for their providers",
}

// modules says which packages, or which layers, may import a module, so that a new dependency shows in a review.
var modules = map[string][]string{
	"cuelabs.dev/go/oci":                             {"internal/registry/files"},
	"github.com/aws":                                 {string(adapter), string(assembly)},
	"github.com/awslabs":                             {"internal/lambdahost"},
	"github.com/BurntSushi/toml":                     {"internal/build/framework"},
	"github.com/coreos/go-oidc":                      {"internal/oidc"},
	"github.com/go-jose/go-jose":                     {"internal/oidc", "internal/oidc/oidctest"},
	"github.com/go-oauth2/oauth2":                    {"internal/authservice/oauthtest"},
	"github.com/golang-jwt/jwt":                      {"internal/integration", "internal/integration/githubtest"},
	"github.com/google/go-github":                    {"internal/integration"},
	"github.com/google/go-cmp":                       {"internal/build/buildtest", "internal/table/tabletest"},
	"github.com/google/uuid":                         {"internal/id", "internal/agentserver", "internal/assistant"},
	"github.com/oapi-codegen/nullable":               {"internal/agentserver", "internal/controlplane"},
	"github.com/oapi-codegen/runtime":                {"internal/agentserver", "internal/controlplane"},
	"github.com/santhosh-tekuri/jsonschema":          {"internal/web"},
	"github.com/standard-webhooks/standard-webhooks": {"internal/webhook"},
	"github.com/spf13/cobra":                         {"internal/cmd/slipway", "internal/cmd/slipway-local"},
	"golang.org/x/oauth2":                            {"internal/authservice", "internal/integration"},
	"golang.org/x/sync":                              {"internal/agentserver", "internal/authservice", "internal/bench", "internal/compute/docker", "internal/demo", "internal/integration", "internal/push", "internal/runner", "internal/store", "internal/workspacesecret"},
	"golang.org/x/time":                              {"internal/web"},
	"golang.org/x/term":                              {"internal/cmd/slipway"},
	"github.com/containerd/errdefs":                  {"internal/build/docker", "internal/compute/docker"},
	"github.com/distribution/reference":              {"internal/compute/docker"},
	"github.com/opencontainers":                      {"internal/registry/files"},
	"github.com/moby/moby":                           {"internal/build/docker", "internal/compute/docker"},
	"github.com/prometheus":                          {"internal/metrics"},
	"github.com/robfig/cron":                         {"internal/cron"},
	"golang.org/x/sys":                               {"internal/child"},
	"gopkg.in/yaml.v3":                               {"internal/template"},
	"zombiezen.com/go/sqlite":                        {"internal/table/sqlite"},
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
	for _, members := range layers {
		for _, path := range members {
			if !known[path] {
				t.Errorf("%s is in layers, but there is no such package", path)
			}
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

func layerOf(name string) layer {
	for layer, members := range layers {
		if slices.Contains(members, name) {
			return layer
		}
	}
	switch {
	case strings.HasPrefix(name, "functions/"):
		return assembly
	case slices.Contains(layers[seam], path.Dir(name)):
		return adapter
	default:
		return ""
	}
}
