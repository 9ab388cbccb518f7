package build

import (
	"regexp"
	"strings"
)

// credentials matches the credentials in the addresses of a variable, and what stands before them.
// The address of a proxy may have no scheme.
var credentials = regexp.MustCompile(`(://|^\w+_(?i:proxy)=)[^/?#\s]*@`)

// WithoutCredentials removes user names and passwords from the addresses in a variable, which is
// NAME=value, because a tenant knows every variable that its commands get.
func WithoutCredentials(variable string) string { return credentials.ReplaceAllString(variable, "$1") }

// ShellWord makes one word of a shell command from a text.
func ShellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
