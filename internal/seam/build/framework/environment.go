package framework

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/dotenv"
	"github.com/slipway-run/slipway/internal/base/publicname"
)

// environment reads env: an object of strings, or the path of a .env file, relative to the
// configuration file's directory.
func (p *parser) environment() {
	if !asks(p.fields["env"]) {
		return
	}
	var path string
	if json.Unmarshal(p.fields["env"], &path) == nil {
		p.environmentFile(path)
		return
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(p.fields["env"], &values); err != nil {
		p.problem("env: must be an object of strings, or the path of a .env file")
		return
	}
	env := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var value *string
		if err := json.Unmarshal(values[name], &value); err != nil || value == nil {
			p.problem("env.%s: must be a string", name)
			continue
		}
		env[name] = *value
	}
	p.checkEnvironment(env)
}

// environmentFile reads the .env file. It is not a problem if the file is not in the
// repository: authors often keep it out on purpose, and keep one file above several agents.
func (p *parser) environmentFile(path string) {
	data, err := readFile(p.root, filepath.Join(p.config.Dir, path))
	switch {
	case filepath.IsAbs(path):
		p.problem("env: the path %q must be relative", path)
		return
	case errors.Is(err, fs.ErrNotExist) || p.leaves(path):
		p.config.Remarks = append(p.config.Remarks, "env: the file "+path+" is not in the repository; nothing is set from it")
		return
	case err != nil:
		p.problem("env: the file %q cannot be read: %v", path, err)
		return
	}
	variables, wrong := dotenv.Parse(string(data))
	for _, line := range wrong {
		p.problem("env: line %d of %s is not NAME=value", line, path)
	}
	env := map[string]string{}
	for _, v := range variables {
		env[v.Name] = v.Value
	}
	p.checkEnvironment(env)
}

// checkEnvironment checks that an agent may have the variables, and keeps them.
func (p *parser) checkEnvironment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch wrong := wrongVariable(name); {
		case wrong != "":
			p.problem("env.%s: %s", name, wrong)
		case strings.ContainsRune(env[name], 0):
			p.problem("env.%s: must not contain a NUL character", name)
		case name == "PORT" && !isPort(env[name]):
			p.problem("env.PORT: must be a number from 1 to 65535")
		}
	}
	p.config.Env = env
}

// wrongVariable says why a repository cannot set a variable, "" if it can.
func wrongVariable(name string) string {
	switch {
	case !dotenv.IsName(name):
		return "is not a name that an environment variable can have"
	case name == "HOST" || strings.HasPrefix(name, "SLIPWAY_"):
		return "is set by the platform"
	case publicname.IsSetting(name):
		return "is not read here: " + publicname.Instead(name)
	}
	return ""
}

func isPort(value string) bool {
	port, err := strconv.ParseUint(value, 10, 16)
	return err == nil && port > 0
}
