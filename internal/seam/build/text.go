package build

import (
	"regexp"
	"strings"
)

// credentials matches the credentials in the addresses of a variable's value.
var credentials = regexp.MustCompile(`://[^/\s,|@]+(?::[^/\s,|]*)?@`)

// WithoutCredentials removes user names and passwords from the addresses in a variable,
// because a tenant knows every variable that its commands get.
func WithoutCredentials(variable string) string { return credentials.ReplaceAllString(variable, "://") }

// ShellWord makes one word of a shell command from a text.
func ShellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
