// Package framework reads the framework configuration file of a repository (framework.json)
// and reports the needs of the repository's agent: the language, the dependencies, the
// commands. It only reads. The builders do the work, on the machine (package local) or in an
// image (package dockerfile).
package framework

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

const (
	// DefaultPath is the path of the configuration file if no path is given. The public name
	// of the file is tried after it.
	DefaultPath = "framework.json"
	// fileLimit bounds the size of each file that is read from the repository, in bytes.
	fileLimit = 1 << 20
)

// Config is a framework configuration file that can be used.
type Config struct {
	// Dir is the directory of the file, relative to the repository's root. The commands run
	// there. File is the name of the file in Dir.
	Dir, File string
	Graphs    []string
	// Descriptions describe the purpose of graphs.
	Descriptions map[string]string
	// Build is the argument list of the build command, or nil. BuildText is the command's name
	// in messages.
	Build     []string
	BuildText string
	Start     []string
	// Language is the language of the runtime that hosts the graphs of a repository without a
	// start command, else "".
	Language Language
	// Version is the version of the language, "" for any version. Dependencies are the
	// dependencies of a Python repository.
	Version      string
	Dependencies []string
	// Source is the uv project that a Python repository is installed from, nil if Dependencies
	// are installed.
	Source *Source
	// Pip are variables, "NAME=value", with the settings of the repository's pip_config_file for
	// uv.
	Pip []string
	// Tools are the tools of pip that keep_pkg_tools asks for: no environment has them otherwise.
	Tools []string
	Env   map[string]string
	// Lines are the instructions that the repository adds to the Dockerfile of its image.
	Lines []string
	// Encryption is the repository's own encryption, "path:variable", or "" if the repository has
	// no encryption of its own.
	Encryption string
	// Auth is the repository's own authentication, "path:variable", or "" if the repository
	// has no authentication of its own.
	Auth string
	// Settings are the settings of the agent server that the file asks for.
	Settings build.Settings
	// Remarks go to the build log.
	Remarks []string

	// files are the files of the graphs, relative to Dir.
	files []string
}

// Read reads and checks the configuration file of a tree. The message of the Failure contains
// all problems of the file. A key that only some platforms serve is refused unless it is among
// the offers.
func Read(tree, path string, offers ...Offer) (Config, error) {
	// It opens no file outside the tree, not through a symbolic link either.
	root, err := os.OpenRoot(tree)
	if err != nil {
		return Config{}, err
	}
	c, err := readAt(root, path, offers)
	return c, errors.Join(err, root.Close())
}

// readAt reads the file at a path, or the file with a usual name in the root.
func readAt(root *os.Root, path string, offers []Offer) (Config, error) {
	if path == "" {
		path = DefaultPath
		if name, ok := firstOf(root, ".", configNames...); ok {
			if err := sameFiles(root, name); err != nil {
				return Config{}, err
			}
			path = name
		}
	}
	return read(root, path, offers)
}

// sameFiles refuses a repository in which another file with a usual name has different
// content: the agent would miss everything that only the other file asks for.
func sameFiles(root *os.Root, name string) error {
	text, err := readFile(root, name)
	if err != nil {
		return nil //nolint:nilerr // read says what is wrong with it
	}
	for _, other := range configNames {
		if _, err := root.Lstat(other); other == name || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if also, err := readFile(root, other); err != nil || !bytes.Equal(text, also) {
			return build.Fail(build.ReasonConfigInvalid, "the repository has both %q and %q, and they differ: name the one that counts in framework_config_path, or keep one.", name, other)
		}
	}
	return nil
}

func read(root *os.Root, path string, offers []Offer) (Config, error) {
	data, err := readFile(root, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Config{}, build.Fail(build.ReasonConfigNotFound, "the repository has no framework configuration file %q at this commit%s.", path, whatThereIs(root, path))
	case err != nil:
		return Config{}, build.Fail(build.ReasonConfigInvalid, "the framework configuration file %q cannot be read: %v.", path, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Config{}, build.Fail(build.ReasonConfigInvalid, "%s is not a JSON object: %v%s.", path, err, positionOf(data, err))
	}
	p := parser{root: root, fields: fields, offers: offers, config: Config{Dir: filepath.Dir(path), File: filepath.Base(path)}}
	p.graphs()
	p.commands()
	p.environment()
	p.keys()
	p.pipFile()
	p.packageTools()
	p.dockerfileLines()
	p.baseImage()
	p.auth()
	p.encryption()
	p.http()
	p.ui()
	p.ttls()
	p.webhooks()
	p.size()
	if len(p.problems) > 0 {
		return Config{}, build.Fail(build.ReasonConfigInvalid, "%s cannot be used:\n- %s", path, strings.Join(p.problems, "\n- "))
	}
	return p.config, nil
}

// parser checks one field after the other and collects the problems.
type parser struct {
	root     *os.Root
	fields   map[string]json.RawMessage
	offers   []Offer
	config   Config
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

// graphs reads {id: "path:variable"}, or {id: {"path": "path:variable"}}.
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
	p.config.Graphs = slices.Sorted(maps.Keys(graphs))
	for _, id := range p.config.Graphs {
		if id == "" {
			p.problem("graphs: the id of a graph must not be empty")
		}
		p.graphKeys(id, graphs[id])
		path, ok := graphPath(graphs[id])
		if at := strings.LastIndexByte(path, ':'); !ok || at <= 0 || at == len(path)-1 {
			p.problem(`graphs.%s: must be "path/to/file:variable"`, id)
		} else if p.leaves(path[:at]) {
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

// commands reads start and build. Without start, the graphs must be in the language of a
// runtime.
func (p *parser) commands() {
	if p.has("build") {
		p.config.Build, p.config.BuildText = p.command("build")
	}
	if p.has("start") {
		p.config.Start, _ = p.command("start")
		p.config.Start = replaceShell(p.config.Start)
		p.ownDirectory()
		return
	}
	p.wantedLanguage()
}

// replaceShell lets the shell become the agent if the text is one simple command. Then the
// agent is the process that the target started, and it is told when it must stop or when the
// server has died.
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

// RemarksOn returns all remarks for the build of a deployment with these commands, which only
// JavaScript deployments run.
func (c Config) RemarksOn(installCommand, buildCommand string) []string {
	remarks := slices.Clone(c.Remarks)
	if c.Language == Node {
		return remarks
	}
	if installCommand != "" {
		remarks = append(remarks, "install_command is not run: it is for agents in JavaScript whose configuration file has no start command")
	}
	if buildCommand != "" {
		remarks = append(remarks, "build_command is not run: it is for agents in JavaScript whose configuration file has no start command. The key build of the configuration file names a command for all agents")
	}
	return remarks
}
