package dockerfile

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// node installs a JavaScript repository in the same way as the builder of one machine, and
// returns the argument list that starts the agent.
func (r *recipe) node() ([]string, error) {
	config := r.source.Config
	if err := r.prepare(); err != nil {
		return nil, err
	}
	runtime := slipwayDir + "/runtime"
	r.run(Step{What: "the installation of the Node runtime", Reason: build.ReasonRuntimeMissing}, "cd "+runtime, "npm ci --omit=dev --no-audit --no-fund")
	if err := r.packages(); err != nil {
		return nil, err
	}
	if command := r.source.BuildCommand; command != "" {
		r.command(Step{What: "the build command " + strconv.Quote(command), Reason: build.ReasonBuildCommandFailed}, "build-command", config.Dir, command)
	}
	if config.Settings.HasUI() {
		bundler := runtime + "/ui"
		r.run(Step{What: "the installation of the bundler of components", Reason: build.ReasonRuntimeMissing}, "cd "+bundler, "npm ci --omit=dev --no-audit --no-fund")
		r.run(Step{What: "the bundling of the components that ui names", Reason: build.ReasonBuildCommandFailed}, "cd "+inAgent(config.Dir), "node "+bundler+"/bundle.mjs "+config.File)
	}
	r.add(fmt.Sprintf("RUN node %[1]s/src/sbom.mjs %[2]s %[1]s >%[3]s", runtime, agentDir, SBOM))
	return []string{"node", runtime + "/main.mjs", "--config", inAgent(config.Dir) + "/" + config.File}, nil
}

// packages installs the dependencies of the repository, and leaves the repository beside them.
func (r *recipe) packages() error {
	if command := r.source.InstallCommand; command != "" {
		r.whole()
		r.command(Step{What: "the install command " + strconv.Quote(command), Reason: build.ReasonDependenciesFailed}, "install-command", ".", command)
		return nil
	}
	installation, err := r.source.Config.Installation(r.source.Tree)
	if err != nil {
		return err
	}
	if err := plain(installation.Dir); err != nil {
		return err
	}
	if installation.Lock != "" {
		if err := r.pinnedBy(path.Join(installation.Dir, installation.Lock)); err != nil {
			return err
		}
	}
	manifests, err := installation.Manifests(r.source.Tree)
	if err != nil {
		return err
	}
	alone, err := r.before(manifests)
	if err != nil {
		return err
	}
	program := strings.Join(installation.Program(installation.Tool != "npm"), " ")
	r.run(Step{What: "the install command " + strconv.Quote(installation.Text()), Reason: build.ReasonDependenciesFailed},
		"cd "+inAgent(installation.Dir), program+" "+strings.Join(installation.Args, " "))
	if alone {
		r.copy(Tree, agentDir)
	}
	return nil
}
