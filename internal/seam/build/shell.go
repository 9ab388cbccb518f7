package build

import "strings"

// ShellWord makes one word of a shell command from a text.
func ShellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
