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

var names = func() (n struct {
	Word, Configuration, Tracing string
	Servers                      []string
}) {
	if err := json.Unmarshal(text, &n); err != nil {
		panic("publicname: " + err.Error())
	}
	return n
}()

// ConfigurationFile is the name of the configuration file in public repositories.
func ConfigurationFile() string { return names.Configuration }

// Servers are the names of the public server's own images.
func Servers() []string { return slices.Clone(names.Servers) }

// IsServer reports whether an image is one of the public server's own images, of any release.
func IsServer(image string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(image, "docker.io/"), ":")
	return slices.Contains(names.Servers, name)
}

// Neutral returns the name that a public name has here, and Public returns the reverse for names
// with the framework's own word. A name without a public word is the same in both.
func Neutral(name string) string { return neutral.Replace(name) }

var neutral = strings.NewReplacer(names.Word, "framework", names.Tracing, "framework")

// Public returns the public service's spelling of a name.
func Public(name string) string { return strings.ReplaceAll(name, "framework", names.Word) }

// Tracing returns the name of a value that places a run in a trace: "trace", "project", "tags" or
// "metadata". Clients send the values in headers, and graphs read them in their configuration.
func Tracing(value string) string { return names.Tracing + "-" + value }

// KeysPastAuth is the member of auth that lets keys of the public service past a repository's own
// authentication.
func KeysPastAuth() string { return "allow_" + names.Tracing + "_api_keys" }

// MemberTracer is the public name of the member framework_tracer of a run.
func MemberTracer() string { return names.Tracing + "_tracer" }

// settings are the values that the public server also takes from its environment: keys of the
// configuration file, and the keys that it encrypts with.
var settings = []string{"AES_JSON_KEYS", "AES_KEY", "AUTH", "CHECKPOINTER", "CONFIG", "ENCRYPTION", "HTTP", "PRIORITY", "STORE", "UI", "UI_CONFIG", "WEBHOOKS"}

// backendVariable names the place of the public server's checkpoints.
const backendVariable = "LS_DEFAULT_CHECKPOINTER_BACKEND"

// Settings are the environment variables, without their first word, that the public server
// obeys in the same way as the configuration file.
func Settings() []string { return slices.Clone(settings) }

// IsSetting reports whether a variable is one of the Settings, or says where the public server
// keeps its checkpoints. Such a variable is refused here, because no code reads it.
func IsSetting(variable string) bool {
	if variable == backendVariable {
		return true
	}
	word, setting, _ := strings.Cut(variable, "_")
	return (word == strings.ToUpper(names.Word) || word == "FRAMEWORK") && slices.Contains(settings, setting)
}

// Instead says what to do instead of setting a variable that IsSetting.
func Instead(variable string) string {
	if variable == backendVariable {
		return NoCheckpointer
	}
	switch _, setting, _ := strings.Cut(variable, "_"); setting {
	case "CONFIG":
		return "change the configuration of a graph's own assistant with PATCH /assistants/{assistant_id}"
	case "AES_KEY", "AES_JSON_KEYS", "ENCRYPTION":
		return NoEncryption
	}
	return "what it asks for belongs into the configuration file of the repository, where each key works or is refused"
}

// NoEncryption is the reason why keys and code with which the public server encrypts are refused.
const NoEncryption = "the platform encrypts nothing with a key, and with code of the repository only on one machine, for Python graphs (the key encryption): encrypt in the graph what the platform must not read, or have the operator keep the data on an encrypted disk or, on AWS, under a KMS key"

// NoCheckpointer is the reason why other places of checkpoints than the platform's are refused.
const NoCheckpointer = "the platform keeps all checkpoints itself, because interrupts, history and copies of threads need them: remove it. A graph reads them as from any checkpointer, and other programs read them with GET /threads/{thread_id}/state and /history"
