package revision_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestDiagnose checks the most usual mistakes, in the words of the builder, the runtimes
// and the tools that they call.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, message, log string
		cause, remedy        string
	}{
		"wrong branch":               {"REF_NOT_FOUND", `the repository has no branch "mian"`, "", "The branch or tag does not exist.", "--ref"},
		"a commit that is gone":      {"REF_NOT_FOUND", "the repository https://git.test/a does not give out the commit 0a1b any more. fatal: not our ref", "", "The repository does not have the commit 0a1b any more.", "contains it"},
		"no configuration":           {"CONFIG_NOT_FOUND", `there is no "framework.json"`, "", "The framework configuration file is not where it was looked for.", "--config"},
		"syntax, Python":             {"START_FAILED", "the agent exited. Its last output:\ngraph 'agent': agent.py, line 3: SyntaxError: '(' was never closed", "", "agent.py, line 3 cannot be read: '(' was never closed.", "that line"},
		"syntax, Node":               {"START_FAILED", "the agent exited. Its last output:\ngraph \"agent\": agent.ts, line 3: SyntaxError: Unexpected token", "", "agent.ts, line 3 cannot be read: Unexpected token.", "that line"},
		"syntax, Go":                 {"BUILD_COMMAND_FAILED", "the build failed", "# agent\n./main.go:7:2: undefined: foo", "./main.go:7 does not compile: undefined: foo.", "that line"},
		"dependency, Python":         {"START_FAILED", "Its last output:\ngraph 'agent': agent.py, line 1: ModuleNotFoundError: No module named 'numpy.linalg'", "", "The Python module numpy is not installed.", `directory that "dependencies" names`},
		"module of the server":       {"START_FAILED", "Its last output:\nauth: auth.py, line 4: ModuleNotFoundError: No module named 'agentgraph_api.auth'", "", "The module agentgraph_api belongs to the public service's own server, which does not run agents here.", "get_client"},
		"dependency, Node":           {"START_FAILED", "Its last output:\ngraph \"agent\": Error: Cannot find package 'zod' imported from /a.ts", "", "The package zod is not installed.", "package.json"},
		"releases, Python":           {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 1, in the import of adapters.sessions: ImportError: cannot import name 'open' from 'mcp.client' (/b/venv/lib/python3.11/site-packages/mcp/client.py)", "", "The installed release of mcp.client has no open.", "Pin releases"},
		"releases, Node":             {"START_FAILED", "Its last output:\ngraph \"agent\": its framework cannot be loaded: node_modules: SyntaxError: The requested module '@a/checkpoint' does not provide an export named 'Delta'", "", "The installed release of @a/checkpoint has no Delta.", "lock file"},
		"own export, Node":           {"START_FAILED", "Its last output:\ngraph \"agent\": a.ts, line 3: SyntaxError: The requested module './b.js' does not provide an export named 'c'", "", "a.ts, line 3 cannot be read", "that line"},
		"framework, Python":          {"START_FAILED", "Its last output:\nTypeError: Reviver got an argument\nthe framework cannot be loaded, in the import of framework.checkpoint: TypeError: Reviver got an argument", "", "The installed module framework.checkpoint cannot be imported.", `"kind": "uv"`},
		"module of a release":        {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 1, in the import of framework.prebuilt: ModuleNotFoundError: No module named 'framework.stream'", "", "The installed module framework.prebuilt cannot be imported.", "Pin releases"},
		"dependency of a dependency": {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 1, in the import of vectors.local: ModuleNotFoundError: No module named 'numpy'", "", "The Python module numpy is not installed.", "requirements.txt"},
		"no package, pnpm":           {"DEPENDENCIES_FAILED", "pnpm failed\n\u2009ERR_PNPM_FETCH_404\u2009 GET https://packages.test/@a/planted/-/planted-0.0.36.tgz: Not Found - 404", "", "There is no package @a/planted/-/planted-0.0.36.tgz.", "registry"},
		"no package, bun":            {"DEPENDENCIES_FAILED", "bun failed\nwarn: GET https://packages.test/optional/-/optional-1.tgz - 404\nerror: GET https://packages.test/planted/-/planted-1.tgz - 404", "", "There is no package planted/-/planted-1.tgz.", "registry"},
		"flat layout":                {"DEPENDENCIES_FAILED", "uv failed\n  cause: The build backend returned an error\n   error: Multiple top-level packages discovered in a flat-layout: ['app', 'data'].", "", "The build of the repository's package does not know which of ['app', 'data'] belong to it.", "tool.setuptools"},
		"framework too old":          {"DEPENDENCIES_FAILED", "uv failed\nerror: No solution found when resolving dependencies\n  cause: Because slipway-runtime depends on framework==0.3.14 and framework>=0.3.18,<2, we can conclude that your requirements are unsatisfiable.", "", "The dependencies exclude all releases that the runtime of the graphs needs: framework>=0.3.18,<2.", "Allow"},
		"settings of pydantic":       {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 2: ValidationError: 2 validation errors for Settings BACKEND_URL Field required [type=missing, input_value={'MODEL_API_KEY': '***'}, input_type=dict]", "", "The variable BACKEND_URL is not set.", "--secret BACKEND_URL"},
		"variable, Chinese":          {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 2: ValueError: 环境变量 MODEL_ENDPOINT 未设置", "", "The variable MODEL_ENDPOINT is not set.", "--secret MODEL_ENDPOINT"},
		"another Python, uv":         {"DEPENDENCIES_FAILED", "uv failed\nerror: No solution found when resolving dependencies\n  cause: Because the current Python version (3.11.7) does not satisfy Python>=3.12,<4.0 and agent==0.1 depends on Python>=3.12,<4.0", "", "Python 3.11.7 is used, and a package needs Python>=3.12,<4.0.", "python_version"},
		"no package, uv":             {"DEPENDENCIES_FAILED", "uv failed", "  × No solution found when resolving dependencies:\n  ╰─▶ Because planted was not found in the package registry and you require planted, we can conclude", "There is no package planted.", "registry"},
		"no package, pip":            {"DEPENDENCIES_FAILED", "pip failed", "ERROR: No matching distribution found for planted==9", "There is no package planted==9.", "registry"},
		"no package, npm":            {"DEPENDENCIES_FAILED", "npm failed", "npm error 404  The requested resource '@a/planted@1' could not be found or you do not have permission to access it.", "There is no package @a/planted.", "registry"},
		"no version, uv":             {"DEPENDENCIES_FAILED", "uv failed", "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of planted==99.99.99 and you require planted==99.99.99", "There is no package planted==99.99.99.", "version"},
		"no interpreter":             {"RUNTIME_MISSING", "the creation of a Python environment exited with code 2. Its last output:\nerror: Request failed after 3 retries\n  cause: Failed to download `https://runtimes.test/20261110/cpython-3.12.16%2B20261110-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz`", "", "Python 3.12 is not on the server's machine, and the machine cannot download it.", "python_version"},
		"no runtime":                 {"RUNTIME_MISSING", "node_version asks for Node 24, and this machine has 20.20.2.", "", "node_version asks for Node 24, and this machine has 20.20.2.", "version"},
		"graph that is not built":    {"START_FAILED", "Its last output:\ngraph \"agent\": there is no file \"./dist/agent.js\"", "", "The file ./dist/agent.js is not in the repository, and no command of the build has made it.", "build_command"},
		"workspace, not built":       {"START_FAILED", "Its last output:\ngraph \"agent\": ./src/graph.ts: Error: Cannot find package 'node_modules/@a/shared/dist/index.js' imported from graph.ts", "", "The file node_modules/@a/shared/dist/index.js is not in the repository, and no command of the build has made it.", "build_command"},
		"no graph":                   {"START_FAILED", "Its last output:\ngraph 'agent': a graph, or a function that returns one, was expected, not int", "", "The agent ends when it is started: a graph, or a function that returns one, was expected, not int.", "that line"},
		"lock file, npm":             {"DEPENDENCIES_FAILED", "npm failed", "npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.", "The versions of the dependencies contradict each other", "lock file"},
		"lock file, pip":             {"DEPENDENCIES_FAILED", "pip failed", "ERROR: ResolutionImpossible: for help visit", "The versions of the dependencies contradict each other: ResolutionImpossible.", "lock file"},
		"wrong graph, no file":       {"START_FAILED", "Its last output:\ngraph 'agent': there is no file './agnet.py'", "", "The path of a graph is wrong: there is no file './agnet.py'.", `"graphs"`},
		"wrong graph, no name":       {"START_FAILED", "Its last output:\ngraph 'agent': ./agent.py has no variable 'grahp'", "", "The path of a graph is wrong: ./agent.py has no variable 'grahp'.", `"graphs"`},
		"crash at start":             {"START_FAILED", "Its last output:\ngraph 'agent': agent.py, line 9: ValueError: no model", "", "The agent ends when it is started: agent.py, line 9: ValueError: no model.", "that line"},
		"crash without a word":       {"START_FAILED", "the agent exited with code 3 before it answered GET /ping.", "", "The agent ends when it is started.", "same command"},
		"never healthy":              {"NOT_READY", "the agent did not answer", "listening on 3000", "The agent was started, and never answered GET /ping.", "$PORT"},
		"missing secret, Python":     {"START_FAILED", "Its last output:\ngraph 'agent': agent.py, line 2: KeyError: 'MODEL_KEY'", "", "The variable MODEL_KEY is not set.", "--secret MODEL_KEY"},
		"missing secret, a model":    {"START_FAILED", "Its last output:\nError: The environment variable MODEL_API_KEY is missing", "", "The variable MODEL_API_KEY is not set.", "--secret MODEL_API_KEY"},
		"variable is not set":        {"START_FAILED", "Its last output:\ngraph 'agent': src/db.py, line 26: RuntimeError: DATABASE_URL is not set; configure it in .env", "", "The variable DATABASE_URL is not set.", "--secret DATABASE_URL"},
		"variable, no verb":          {"START_FAILED", "Its last output:\ngraph 'agent': src/db.py, line 42: ValueError: SERVER_HOST_NAME environment variable not set.", "", "The variable SERVER_HOST_NAME is not set.", "--secret SERVER_HOST_NAME"},
		"variable to set":            {"START_FAILED", "Its last output:\ngraph \"agent\": src/crawl.ts, line 3: Error: API key is required for the cloud API. Set CRAWL_API_KEY env or pass apiKey.", "", "The variable CRAWL_API_KEY is not set.", "--secret CRAWL_API_KEY"},
		"variables are missing":      {"START_FAILED", "Its last output:\nauth: src/client.ts, line 19: Error: Missing configuration: AUTH_URL or AUTH_KEY", "", "The variable AUTH_URL is not set.", "--secret AUTH_URL"},
		"a model's credentials":      {"START_FAILED", "Its last output:\ngraph 'agent': src/llms.py, line 67: OpenAIError: Missing credentials. Please pass an `api_key`, or set the `MODEL_API_KEY` or `MODEL_ADMIN_KEY` environment variable.", "", "The variable MODEL_API_KEY is not set.", "--secret MODEL_API_KEY"},
		"no variable":                {"START_FAILED", "Its last output:\ngraph 'agent': a.py, line 1: ValueError: MAX_TOKENS must be less than 9", "", "The agent ends when it is started: a.py, line 1: ValueError: MAX_TOKENS must be less than 9.", "that line"},
		"workspace secret":           {"SECRET_NOT_FOUND", "there is no secret", "", "A secret of the workspace that the deployment refers to does not exist.", "Make the secret"},
		"out of memory":              {"OUT_OF_MEMORY", "the agent used more than 512 MB", "", "The memory did not suffice.", "resource_spec of a deployment of the source external_docker, else compute_tier"},
		"something else":             {"INTERNAL_ERROR", "The platform had a fault.\nmore", "", "The platform had a fault.", ""},
	} {
		got := revision.Diagnose(revision.Revision{Reason: c.reason, Message: c.message}, strings.Split(c.log, "\n"))
		if !strings.HasPrefix(got.Cause, c.cause) || !strings.Contains(got.Remedy, c.remedy) {
			t.Errorf("%s: got %q, %q; want %q, %q", name, got.Cause, got.Remedy, c.cause, c.remedy)
		}
	}
}

// TestDiagnoseGraphsThatLoadSlowly checks that the author of a graph, which listens nowhere, is not
// told to listen.
func TestDiagnoseGraphsThatLoadSlowly(t *testing.T) {
	t.Parallel()
	slow := revision.Revision{Reason: "NOT_READY", Message: "the agent did not answer", Build: &build.Record{Language: "python"}}
	if got := revision.Diagnose(slow, nil); got.Cause != "The graphs of the agent were not loaded in time." || strings.Contains(got.Remedy, "$PORT") {
		t.Errorf("got %q, %q", got.Cause, got.Remedy)
	}
}

// TestDiagnoseShowsTheEndOfTheOutput checks that the evidence of a command's failure has the last
// lines of the output, because they say what failed.
func TestDiagnoseShowsTheEndOfTheOutput(t *testing.T) {
	t.Parallel()
	failed := revision.Revision{Reason: "DEPENDENCIES_FAILED", Message: "the install command failed. Its last output:\nresolved 1\nresolved 2\nresolved 3\n\nresolved 4\npostinstall\nexited with 1"}
	want := []string{"the install command failed. Its last output:", "resolved 3", "resolved 4", "postinstall", "exited with 1"}
	if got := revision.Diagnose(failed, []string{"unpacking", failed.Message}); !slices.Equal(got.Evidence, want) {
		t.Errorf("got %q", got.Evidence)
	}
	failed.Message = want[0]
	log := []string{"unpacking", "resolved 1", "resolved 3", "resolved 4", "", "postinstall", "exited with 1"}
	if got := revision.Diagnose(failed, log); !slices.Equal(got.Evidence, want) {
		t.Errorf("with the output only in the log: got %q", got.Evidence)
	}
}
