package dockerfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

const (
	venv        = slipwayDir + "/venv"
	interpreter = venv + "/bin/python"
)

// python installs a Python repository in the same way as the builder of one machine, and
// returns the argument list that starts the agent.
func (r *recipe) python() ([]string, error) {
	config := r.source.Config
	environment, err := config.Environment(r.source.Tree)
	if err != nil {
		return nil, err
	}
	if err := plainNames(environment); err != nil {
		return nil, err
	}
	if environment.Locked != nil {
		if err := r.pinnedBy(environment.Locked.File()); err != nil {
			return nil, err
		}
	}
	r.add("ENV PYTHONUNBUFFERED=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never")
	uv := "{ command -v uv >/dev/null || python3 -m pip install --quiet --no-cache-dir --disable-pip-version-check --root-user-action=ignore uv==" + framework.UVVersion + "; }"
	if err := r.prepare(uv); err != nil {
		return nil, err
	}
	manifests, err := environment.Manifests(r.source.Tree)
	if err != nil {
		return nil, err
	}
	alone, err := r.before(manifests)
	if err != nil {
		return nil, err
	}
	r.Files["requirements.in"] = environment.Requirements
	r.copy("requirements.in", slipwayDir+"/requirements.in")
	r.run(Step{What: "the installation of dependencies", Reason: build.ReasonDependenciesFailed}, installation(environment, alone)...)
	if alone {
		r.copy(Tree, agentDir)
	}
	r.ownPackages(environment)
	r.add(fmt.Sprintf("RUN %s -P %s/runtime/slipway_runtime/sbom.py >%s", interpreter, slipwayDir, SBOM))
	var modules strings.Builder
	for _, dir := range environment.Path {
		modules.WriteString(inAgent(dir) + ":")
	}
	r.add("ENV VIRTUAL_ENV=" + venv + " PYTHONPATH=" + modules.String() + slipwayDir + "/runtime")
	return []string{interpreter, "-m", "slipway_runtime", "--config", inAgent(config.Dir) + "/" + config.File}, nil
}

// plainNames refuses names that a Dockerfile would misread.
func plainNames(environment framework.Environment) error {
	names := slices.Concat(environment.Inputs, environment.Packages, environment.Path, []string{environment.Dir})
	if environment.Locked != nil {
		names = append(names, environment.Locked.Package)
	}
	return plain(names...)
}

// ownPackages installs the repository's packages.
func (r *recipe) ownPackages(environment framework.Environment) {
	if len(environment.Packages) == 0 {
		return
	}
	commands := exports(environment.Pip)
	for _, dir := range environment.Packages {
		commands = append(commands, fmt.Sprintf("uv pip install --quiet --python %s --no-deps -e %s", interpreter, inAgent(dir)))
	}
	r.run(Step{What: "the installation of the repository's packages", Reason: build.ReasonDependenciesFailed}, commands...)
}

// exports returns the commands that set variables, whose values have no quotes.
func exports(variables []string) (commands []string) {
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		commands = append(commands, "export "+name+"='"+value+"'")
	}
	return commands
}

// installation returns the commands that make the environment. If alone is true, the whole
// repository is not there, and so there are no settings of uv either.
func installation(environment framework.Environment, alone bool) []string {
	dir := environment.Dir
	if alone && environment.Locked == nil {
		dir = "."
	}
	commands := append(exports(environment.Pip), "cd "+inAgent(dir), "uv venv --quiet --python python3 "+venv)
	var inputs []string
	for _, input := range environment.Inputs {
		inputs = append(inputs, inAgent(input))
	}
	inputs = append(inputs, slipwayDir+"/requirements.in")
	if environment.Locked != nil {
		const exported = "/tmp/build/locked.txt"
		commands = append(commands, "uv "+strings.Join(environment.Locked.Export(exported), " "))
		inputs = append(inputs, exported)
	}
	lock := slipwayDir + "/requirements.txt"
	compile := "uv pip compile --quiet --no-header --no-annotate --python " + interpreter + " -o " + lock + " " + strings.Join(inputs, " ")
	const runtime, conflict = slipwayDir + "/runtime/pyproject.toml", "/tmp/build/conflict"
	return append(commands,
		// If a resolution fails without the runtime, too, its exit status does not change.
		fmt.Sprintf(`{ %s %s 2>%s || { %[1]s && { { echo "%[4]s:"; cat %[3]s; } >&2; exit 1; }; }; }`, compile, runtime, conflict, framework.RuntimeConflict),
		"uv pip install --quiet --python "+interpreter+" --no-deps -r "+lock,
	)
}
