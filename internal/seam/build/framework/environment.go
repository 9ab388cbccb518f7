package framework

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment reads env: an object of strings, or the path of a .env file, relative to the
// configuration file's directory.
func (p *parser) environment() {
	if !p.has("env") {
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
// repository: authors often keep it out on purpose.
func (p *parser) environmentFile(path string) {
	data, err := readFile(p.root, filepath.Join(p.config.Dir, path))
	switch {
	case path == "" || filepath.IsAbs(path):
		p.problem("env: the path %q must be relative", path)
		return
	case errors.Is(err, fs.ErrNotExist):
		p.config.Remarks = append(p.config.Remarks, "env: the file "+path+" is not in the repository; nothing is set from it")
		return
	case err != nil:
		p.problem("env: the file %q cannot be read: %v", path, err)
		return
	}
	env, wrong := parseDotenv(string(data))
	for _, line := range wrong {
		p.problem("env: line %d of %s is not NAME=value", line, path)
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
	case !variableName.MatchString(name):
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

// assignment is a NAME=value of a .env file, as python-dotenv reads it. A value in quotes may have
// several lines.
var assignment = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*` +
	`(?:"((?:\\[\s\S]|[^"\\])*)"|'((?:\\[\s\S]|[^'\\])*)'|([^"'\n][^\n]*)|)[ \t]*(?:#[^\n]*)?(?:\n|$)`)

var (
	comment          = regexp.MustCompile(`(?:^|\s+)#.*`)
	inDoubleQuotes   = strings.NewReplacer(`\a`, "\a", `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v", `\"`, `"`, `\'`, `'`, `\\`, `\`, `\$`, `$`)
	inSingleQuotes   = strings.NewReplacer(`\'`, `'`, `\\`, `\`)
	newlinesOfDotenv = strings.NewReplacer("\r\n", "\n", "\r", "\n")
)

// parseDotenv reads assignments and comments. It also returns the numbers of the lines that it
// cannot read.
func parseDotenv(text string) (env map[string]string, wrong []int) {
	env, text = map[string]string{}, newlinesOfDotenv.Replace(text)
	for line := 1; text != ""; {
		text = strings.TrimLeft(text, " \t")
		whole, rest, _ := strings.Cut(text, "\n")
		switch found := assignment.FindStringSubmatch(text); {
		case strings.TrimSpace(whole) == "", whole[0] == '#':
		case found == nil:
			wrong = append(wrong, line)
		default:
			env[found[1]] = inDoubleQuotes.Replace(found[2]) + inSingleQuotes.Replace(found[3]) + strings.TrimSpace(comment.ReplaceAllString(found[4], ""))
			rest = text[len(found[0]):]
		}
		line += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
	}
	return env, wrong
}
