package local

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/build"
)

const (
	defaultConfigPath = "framework.json"
	// configLimit bounds the files that are read from the repository.
	configLimit = 1 << 20
)

// config is a framework configuration file that can be used.
type config struct {
	// dir is the file's directory, where the commands run.
	dir    string
	graphs []string
	// build is the argument list of the build command, or nil, and buildText what to call it.
	build     []string
	buildText string
	start     []string
	// runtime hosts the graphs of a repository without a start command; files are theirs, from the directory.
	runtime runtime
	files   []string
	// version is of the runtime's language, "" for the one that is there; dependencies are those of a Python repository.
	version      string
	dependencies []string
	env          map[string]string
	// remarks go to the build log.
	remarks []string
}

// readConfig reads and checks the configuration file of the tree. All its problems are in the failure's message.
func readConfig(tree, path string) (config, error) {
	path = cmp.Or(path, defaultConfigPath)
	root, err := os.OpenRoot(tree) // nothing outside the tree can be opened through it, by no symbolic link either
	if err != nil {
		return config{}, err
	}
	c, err := readConfigIn(root, path)
	return c, errors.Join(err, root.Close())
}

func readConfigIn(root *os.Root, path string) (config, error) {
	data, err := readFile(root, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return config{}, fail(build.ReasonConfigNotFound, "the repository has no framework configuration file %q at this commit.", path)
	case err != nil:
		return config{}, fail(build.ReasonConfigInvalid, "the framework configuration file %q cannot be read: %v.", path, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return config{}, fail(build.ReasonConfigInvalid, "%s is not a JSON object: %v%s.", path, err, placeOf(data, err))
	}
	p := parser{root: root, dir: filepath.Dir(path), fields: fields}
	p.config.dir = filepath.Join(root.Name(), p.dir)
	p.graphs()
	p.commands()
	p.environment()
	if len(p.problems) > 0 {
		return config{}, fail(build.ReasonConfigInvalid, "%s cannot be used:\n- %s", path, strings.Join(p.problems, "\n- "))
	}
	return p.config, nil
}

// readFile reads a file of the tree.
func readFile(root *os.Root, path string) ([]byte, error) {
	file, err := root.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, configLimit+1))
	if err == nil && len(data) > configLimit {
		err = fmt.Errorf("it is larger than %d bytes", configLimit)
	}
	return data, errors.Join(err, file.Close())
}

// placeOf says where in the file the syntax is wrong.
func placeOf(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 1 || syntax.Offset > int64(len(data)) {
		return ""
	}
	before := data[:syntax.Offset-1]
	return fmt.Sprintf(" (line %d, column %d)", bytes.Count(before, []byte{'\n'})+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// parser checks one field after the other and collects the problems.
type parser struct {
	root *os.Root
	// dir is the directory of the configuration file, from the root.
	dir      string
	fields   map[string]json.RawMessage
	config   config
	problems []string
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// has reports whether a field is there; null is the same as absent.
func (p *parser) has(field string) bool {
	value := p.fields[field]
	return len(value) > 0 && string(value) != "null"
}

// graphs wants {id: "path:variable"}, or {id: {"path": "path:variable"}}.
func (p *parser) graphs() {
	if !p.has("graphs") {
		p.problem(`graphs: is missing; it must name at least one graph, as {"agent": "path/to/file:variable"}`)
		return
	}
	var graphs map[string]json.RawMessage
	if err := json.Unmarshal(p.fields["graphs"], &graphs); err != nil || len(graphs) == 0 {
		p.problem(`graphs: must be an object with at least one graph, as {"agent": "path/to/file:variable"}`)
		return
	}
	p.config.graphs = slices.Sorted(maps.Keys(graphs))
	for _, id := range p.config.graphs {
		if id == "" {
			p.problem("graphs: the id of a graph must not be empty")
		}
		path, ok := graphPath(graphs[id])
		if at := strings.LastIndexByte(path, ':'); !ok || at <= 0 || at == len(path)-1 {
			p.problem(`graphs.%s: must be "path/to/file:variable"`, id)
		} else if !filepath.IsLocal(filepath.Join(p.dir, path[:at])) || filepath.IsAbs(path) {
			p.problem("graphs.%s: the path %q leaves the repository", id, path[:at])
		} else {
			p.config.files = append(p.config.files, filepath.Clean(path[:at]))
		}
	}
}

func graphPath(value json.RawMessage) (string, bool) {
	var path string
	if json.Unmarshal(value, &path) == nil {
		return path, true
	}
	var graph struct {
		Path string `json:"path"`
	}
	return graph.Path, json.Unmarshal(value, &graph) == nil
}

// commands wants start or graphs in the language of a runtime, and takes build.
func (p *parser) commands() {
	if p.has("build") {
		p.config.build, p.config.buildText = p.command("build")
	}
	if p.has("start") {
		p.config.start, _ = p.command("start")
		p.config.start = replaceShell(p.config.start)
		return
	}
	p.wantedRuntime()
}

// replaceShell lets the shell become the agent where the text is one simple command. The agent then is the process that the target started, and
// is told when it is to stop or when the server has died.
func replaceShell(args []string) []string {
	if len(args) != 3 || args[0] != "sh" || args[1] != "-c" {
		return args
	}
	first, _, _ := strings.Cut(strings.TrimSpace(args[2]), " ")
	if strings.ContainsAny(args[2], ";&|<>()`\n#") || strings.Contains(first, "=") || first == "exec" {
		return args
	}
	return []string{"sh", "-c", "exec " + args[2]}
}

// command reads a shell command or an argument list.
func (p *parser) command(field string) (args []string, text string) {
	value := p.fields[field]
	switch {
	case json.Unmarshal(value, &text) == nil:
		args = []string{"sh", "-c", text}
	case json.Unmarshal(value, &args) == nil && len(args) > 0:
		text = args[0]
	default:
		p.problem("%s: must be a command, as a string or as a list of strings", field)
		return nil, ""
	}
	if strings.TrimSpace(text) == "" {
		p.problem("%s: must not be empty", field)
	}
	if slices.ContainsFunc(args, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		p.problem("%s: must not contain a NUL character", field)
	}
	return args, fmt.Sprintf("%q", text)
}
