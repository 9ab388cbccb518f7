// Package dotenv reads .env files: assignments of values to names of environment variables, as
// python-dotenv reads them, but without the values of other variables in a value (${NAME}).
package dotenv

import (
	"regexp"
	"strings"
)

// Variable is an assignment. Its name may be the name of no environment variable: see IsName.
type Variable struct {
	Name, Value string
	// Line is the number of the first line of the assignment, from 1.
	Line int
}

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsName reports whether a text can be the name of an environment variable.
func IsName(text string) bool { return name.MatchString(text) }

// assignment is NAME=value. A value in quotes may have several lines.
var assignment = regexp.MustCompile(`^(?:export[ \t]+)?([^\s=#"']+)[ \t]*=[ \t]*` +
	`(?:"((?:\\[\s\S]|[^"\\])*)"|'((?:\\[\s\S]|[^'\\])*)'|([^"'\n][^\n]*)|)[ \t]*(?:#[^\n]*)?(?:\n|$)`)

var (
	comment        = regexp.MustCompile(`(?:^|\s+)#.*`)
	inDoubleQuotes = strings.NewReplacer(`\a`, "\a", `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v", `\"`, `"`, `\'`, `'`, `\\`, `\`, `\$`, `$`)
	inSingleQuotes = strings.NewReplacer(`\'`, `'`, `\\`, `\`)
	newlines       = strings.NewReplacer("\r\n", "\n", "\r", "\n")
)

// Parse reads assignments and comments. It also returns the numbers of the lines that it cannot
// read, from 1.
func Parse(text string) (variables []Variable, wrong []int) {
	text = newlines.Replace(text)
	for line := 1; text != ""; {
		text = strings.TrimLeft(text, " \t")
		whole, rest, _ := strings.Cut(text, "\n")
		switch parts := assignment.FindStringSubmatch(text); {
		case strings.TrimSpace(whole) == "", whole[0] == '#':
		case parts == nil:
			wrong = append(wrong, line)
		default:
			plain := strings.TrimSpace(comment.ReplaceAllString(parts[4], ""))
			value := inDoubleQuotes.Replace(parts[2]) + inSingleQuotes.Replace(parts[3]) + plain
			variables = append(variables, Variable{parts[1], value, line})
			rest = text[len(parts[0]):]
		}
		line += strings.Count(text[:len(text)-len(rest)], "\n")
		text = rest
	}
	return variables, wrong
}
