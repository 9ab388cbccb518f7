// Package publicname knows how the public service spells words that have a neutral name here,
// so that its clients and repositories work unchanged. The spellings are data, in names.json.
package publicname

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
)

//go:embed names.json
var text []byte

var names = func() (n struct{ Word, Configuration string }) {
	if err := json.Unmarshal(text, &n); err != nil {
		panic("publicname: " + err.Error())
	}
	return n
}()

// ConfigurationFile is the name of the configuration file in public repositories.
func ConfigurationFile() string { return names.Configuration }

// Neutral returns the name that a public name has here, and Public returns the reverse. A name
// without the public word is the same in both.
func Neutral(name string) string { return strings.ReplaceAll(name, names.Word, "framework") }

// Public returns the public service's spelling of a name.
func Public(name string) string { return strings.ReplaceAll(name, "framework", names.Word) }

// settings are the values that the public server also takes from its environment: keys of the
// configuration file, and the keys that it encrypts with.
var settings = []string{"AES_JSON_KEYS", "AES_KEY", "AUTH", "CHECKPOINTER", "CONFIG", "ENCRYPTION", "HTTP", "STORE", "UI", "UI_CONFIG", "WEBHOOKS"}

// Settings are the environment variables, without their first word, that the public server
// obeys in the same way as the configuration file.
func Settings() []string { return slices.Clone(settings) }

// IsSetting reports whether a variable is one of the Settings. Such a variable is refused
// here, because no code reads it.
func IsSetting(variable string) bool {
	word, setting, _ := strings.Cut(variable, "_")
	return (word == strings.ToUpper(names.Word) || word == "FRAMEWORK") && slices.Contains(settings, setting)
}
