package build

import (
	"crypto/sha256"
	"encoding/hex"
)

// Record describes how a build was made, for people who ask why another build of the same
// commit is different. A value that the builder does not know is "".
type Record struct {
	// Builder is the Version of the program that built.
	Builder string `json:"builder"`
	// Language is the language that the agent is written in, LanguageVersion its version. A
	// build on one machine notes the installed version. A build of an image notes the
	// requested version.
	Language        string `json:"language,omitempty"`
	LanguageVersion string `json:"language_version,omitempty"`
	// Dependencies is the Digest of the texts that pin the dependencies: the versions that
	// they were resolved to, or the lock file.
	Dependencies string `json:"dependencies,omitempty"`
	// Rules is the number of the rules that the configuration file was checked by. It is 0 for
	// builds from before the rules had a number.
	Rules int `json:"rules,omitempty"`
	// Base is the base image. Image is the image that was made from it.
	Base  string `json:"base,omitempty"`
	Image string `json:"image,omitempty"`
}

// Rules is the number of the rules that a configuration file is checked by. It grows when new
// rules refuse a file that the earlier rules accepted, because its agent would be served
// without something that the file asks for. An artifact that was built by earlier rules is not
// run any more: it is built again.
const Rules = 1

// NewRecord returns a record for a build that this program makes now.
func NewRecord(language string) Record {
	return Record{Builder: Version(), Rules: Rules, Language: language}
}

// Digest returns a digest of texts in their order. It also depends on where each text ends.
func Digest(texts ...[]byte) string {
	whole := sha256.New()
	for _, text := range texts {
		one := sha256.Sum256(text)
		if len(texts) == 1 {
			return "sha256:" + hex.EncodeToString(one[:]) // the same digest as other tools compute
		}
		whole.Write(one[:])
	}
	return "sha256:" + hex.EncodeToString(whole.Sum(nil))
}
