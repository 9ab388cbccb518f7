package framework

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// packageTool is a package manager of JavaScript: its lock files, the arguments that install
// exactly the locked versions, and its version if the repository names no version.
type packageTool struct {
	name    string
	locks   []string
	install []string
	version string
	// loose are the arguments if there is no lock file.
	loose []string
}

// packageTools are in the order in which their lock files are looked for. The last tool
// installs a repository that has no lock file and names no tool.
var packageTools = []packageTool{
	{"pnpm", []string{"pnpm-lock.yaml"}, []string{"install", "--frozen-lockfile"}, "10.34.8", []string{"install", "--no-frozen-lockfile"}},
	{"yarn", []string{"yarn.lock"}, []string{"install", "--frozen-lockfile"}, "1.22.22", []string{"install"}},
	{"bun", []string{"bun.lock", "bun.lockb"}, []string{"install", "--frozen-lockfile"}, "1.4.5", []string{"install"}},
	{"npm", []string{"package-lock.json", "npm-shrinkwrap.json"}, []string{"ci", "--no-audit", "--no-fund"}, "", []string{"install", "--no-audit", "--no-fund"}},
}

// Installation is how the packages of a JavaScript repository are installed.
type Installation struct {
	// Dir is the directory in which they are installed, relative to the repository's root.
	Dir string
	// Tool is the package manager. Version is the version that package.json names, or else that
	// the lock file needs, or "". Package is the package that contains the tool, with a version
	// if there is one to name.
	Tool, Version, Package string
	// Args are the arguments of the package manager.
	Args []string
	// Lock is the package manager's lock file in Dir, "" if there is no lock file.
	Lock string

	// forced reports whether npm refuses to run another tool, because devEngines names the tool.
	forced bool
}

// Program returns the command of the package manager without its arguments. A fetched package
// manager is run by npm.
func (i Installation) Program(fetched bool) []string {
	var program, settings []string
	if fetched {
		program = []string{"npx", "--yes", "--package", i.Package, "--"}
	}
	if fetched && i.forced {
		program, settings = slices.Insert(program, 1, "--force"), []string{"-u", "npm_config_force"}
	}
	if i.Tool == "yarn" && Major(i.Version) > 1 {
		// The runtime finds packages in directories, not with the loader of Plug'n'Play.
		settings = append(settings, "YARN_NODE_LINKER=node-modules")
	}
	if settings != nil {
		program = append(append(program, "env"), settings...)
	}
	return append(program, i.Tool)
}

// Text returns the name of the command in messages.
func (i Installation) Text() string { return i.Tool + " " + strings.Join(i.Args, " ") }

// Installation returns the installation by the package manager whose lock file is nearest to
// the configuration file, beside it or above it.
func (c Config) Installation(root *os.Root) (Installation, error) {
	manifest := ""
	for dir := c.Dir; ; dir = filepath.Dir(dir) {
		if _, ok := firstOf(root, dir, "package.json"); ok && manifest == "" {
			manifest = dir
		}
		for _, tool := range packageTools {
			if lock, ok := firstOf(root, dir, tool.locks...); ok {
				return tool.in(root, dir, lock, tool.install)
			}
		}
		if dir == "." {
			break
		}
	}
	if manifest == "" {
		return Installation{}, build.Fail(build.ReasonConfigInvalid, "the repository has no package.json beside the framework configuration file or above it.")
	}
	return c.unlocked(root, manifest)
}

// unlocked returns the installation of a repository without a lock file. It uses the package
// manager that the nearest package.json names, or else the last package manager of the list.
func (c Config) unlocked(root *os.Root, manifest string) (Installation, error) {
	for dir := manifest; ; dir = filepath.Dir(dir) {
		manifest, err := managerOf(root, dir)
		if err != nil {
			return Installation{}, err
		}
		if i := slices.IndexFunc(packageTools, func(tool packageTool) bool { return tool.name == manifest.name }); i >= 0 {
			return packageTools[i].in(root, dir, "", packageTools[i].loose)
		}
		if dir == "." {
			break
		}
	}
	last := packageTools[len(packageTools)-1]
	return last.in(root, manifest, "", last.loose)
}

// in returns the tool's installation in a directory of the tree.
func (t packageTool) in(root *os.Root, dir, lock string, args []string) (Installation, error) {
	manifest, err := managerOf(root, dir)
	if err != nil {
		return Installation{}, err
	}
	named := manifest.version
	if manifest.name != t.name {
		named = ""
	}
	named = cmp.Or(named, versionOfLock(root, filepath.Join(dir, lock)))
	i := Installation{Dir: dir, Tool: t.name, Version: named, Package: t.name, Args: args, Lock: lock, forced: manifest.refusing}
	if t.name == "yarn" && Major(named) > 1 {
		i.Package = "@yarnpkg/cli-dist"
		if i.Args = []string{"install", "--immutable"}; lock == "" {
			i.Args[1] = "--no-immutable"
		}
	}
	if version := cmp.Or(named, t.version); version != "" {
		i.Package += "@" + version
	}
	return i, nil
}

// Major returns the first number of a version or of a range of versions, 0 if there is no number.
func Major(version string) int {
	first, _, _ := strings.Cut(strings.TrimLeft(version, "^~"), ".")
	number, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return number
}

// installScripts are the scripts of package.json that run when packages are installed. Their
// effects are unknown.
var installScripts = []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare"}

// Manifests returns the files that determine the installed packages. It returns nil if other
// files may matter, too: without a lock file, in a repository that consists of several
// packages, or in a repository that runs commands of its own when it is installed.
func (i Installation) Manifests(root *os.Root) ([]string, error) {
	if i.Lock == "" {
		return nil, nil
	}
	manifest, err := readFile(root, filepath.Join(i.Dir, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, build.Fail(build.ReasonConfigInvalid, "%s cannot be read: %v.", filepath.Join(i.Dir, "package.json"), err)
	}
	if !alone(manifest) {
		return nil, nil
	}
	for _, more := range []string{"pnpm-workspace.yaml", ".pnpmfile.cjs", ".yarn"} {
		if _, err := root.Stat(filepath.Join(i.Dir, more)); err == nil {
			return nil, nil
		}
	}
	files := []string{filepath.Join(i.Dir, "package.json"), filepath.Join(i.Dir, i.Lock)}
	for _, settings := range []string{".npmrc", ".yarnrc.yml", ".yarnrc", "bunfig.toml"} {
		if _, ok := firstOf(root, i.Dir, settings); ok {
			files = append(files, filepath.Join(i.Dir, settings))
		}
	}
	return files, nil
}

// localSources matches the beginning of a version that is another directory or file of the
// repository.
var localSources = regexp.MustCompile(`^(file:|link:|portal:|patch:|workspace:|\.|/)`)

// alone reports whether all packages that a package.json asks for are in package registries,
// and the installation does nothing else.
func alone(manifest []byte) bool {
	var contents struct {
		Workspaces           json.RawMessage            `json:"workspaces"`
		Scripts              map[string]json.RawMessage `json:"scripts"`
		Dependencies         map[string]string          `json:"dependencies"`
		DevDependencies      map[string]string          `json:"devDependencies"`
		OptionalDependencies map[string]string          `json:"optionalDependencies"`
		PNPM                 json.RawMessage            `json:"pnpm"`
		PatchedDependencies  json.RawMessage            `json:"patchedDependencies"`
		Resolutions          any                        `json:"resolutions"`
		Overrides            any                        `json:"overrides"`
	}
	if json.Unmarshal(manifest, &contents) != nil || contents.Workspaces != nil || contents.PNPM != nil || contents.PatchedDependencies != nil {
		return false // the package manager will report the error
	}
	if namesLocal(contents.Resolutions) || namesLocal(contents.Overrides) {
		return false
	}
	for _, list := range []map[string]string{contents.Dependencies, contents.DevDependencies, contents.OptionalDependencies} {
		for _, from := range list {
			if localSources.MatchString(from) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(installScripts, func(name string) bool { return contents.Scripts[name] != nil })
}

// namesLocal reports whether a version in a JSON value, at any depth, is another directory or file
// of the repository.
func namesLocal(value any) bool {
	switch value := value.(type) {
	case string:
		return localSources.MatchString(value)
	case map[string]any:
		for _, inner := range value {
			if namesLocal(inner) {
				return true
			}
		}
	}
	return false
}
