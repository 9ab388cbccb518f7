package build

import (
	"crypto/sha256"
	"encoding/hex"
)

// Record is what a build was made with, for people who wonder why another one of the same commit is
// different. What a builder does not know is "".
type Record struct {
	// Builder is the Version of the program that built.
	Builder string `json:"builder"`
	// Language is what the agent is written in, and its version: on one machine the one that is
	// there, of an image the one that it asks for.
	Language        string `json:"language,omitempty"`
	LanguageVersion string `json:"language_version,omitempty"`
	// Dependencies is the Digest of what pins the dependencies: the versions that they were
	// resolved to, or the lock file.
	Dependencies string `json:"dependencies,omitempty"`
	// Rules are those that the configuration file was checked by; 0 of builds from before they had
	// a number.
	Rules int `json:"rules,omitempty"`
	// Base is the image that an image was made from, Image that image.
	Base  string `json:"base,omitempty"`
	Image string `json:"image,omitempty"`
}

// Rules is the number of the rules that a configuration file is checked by. It grows when a file
// that was accepted is refused from then on, because its agent would be served without something
// that it asks for. What was built by earlier rules is not run any more: it is built again.
const Rules = 1

// NewRecord is a record of what this program builds now.
func NewRecord(language string) Record {
	return Record{Builder: Version(), Rules: Rules, Language: language}
}

// Digest is a digest of texts in their order, of which it also depends where each ends.
func Digest(texts ...[]byte) string {
	whole := sha256.New()
	for _, text := range texts {
		one := sha256.Sum256(text)
		if len(texts) == 1 {
			return "sha256:" + hex.EncodeToString(one[:]) // as everybody's tools have it
		}
		whole.Write(one[:])
	}
	return "sha256:" + hex.EncodeToString(whole.Sum(nil))
}
