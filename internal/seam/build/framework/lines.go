package framework

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// maxLines is how many instructions dockerfile_lines may have: images have at most 127 layers.
const maxLines = 64

// ownInstructions are the instructions of a Dockerfile that a repository may add. The others need
// files that are not in the image yet, or change what the platform decides: the image's base, its
// shell, and how the agent starts.
var ownInstructions = []string{"ARG", "ENV", "RUN", "USER", "WORKDIR"}

// heredoc matches a word that begins a here-document, which the classic builder does not read.
var heredoc = regexp.MustCompile(`(^|\s)\d*<<-?["']?[A-Za-z_]`)

// dockerfileLines reads the instructions that are added to the Dockerfile of the agent's image.
// The engine can read every instruction that dockerfileLines accepts: one that the engine refuses
// would be a fault of the platform.
func (p *parser) dockerfileLines() {
	const name = "dockerfile_lines"
	if !asks(p.fields[name]) || !slices.Contains(p.offers, OfferLines) {
		return
	}
	var lines []string
	if json.Unmarshal(p.fields[name], &lines) != nil {
		p.problem(`%s: must be a list of strings, as ["RUN apt-get update && apt-get install -y ffmpeg"]`, name)
		return
	}
	instructions, ended := instructionsOf(strings.Join(lines, "\n"))
	if !ended {
		p.problem(`%s: the last line ends with "\", and nothing continues it`, name)
	}
	if len(instructions) > maxLines {
		p.problem("%s: may have %d instructions", name, maxLines)
	}
	for _, instruction := range instructions {
		if wrong := wrongInstruction(instruction); wrong != "" {
			p.problem("%s: %.60q: %s", name, instruction, wrong)
		}
	}
	p.config.Lines = instructions
}

// instructionsOf returns the instructions in a part of a Dockerfile, each on one line. ended is
// false if the last instruction goes on after the text.
func instructionsOf(text string) (instructions []string, ended bool) {
	begun := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimLeft(line, " \t")
		if trimmed == "" || trimmed[0] == '#' {
			continue // also between the lines of an instruction
		}
		if before, goesOn := strings.CutSuffix(line, `\`); goesOn {
			begun += before
			continue
		}
		instructions = append(instructions, strings.TrimSpace(begun+line))
		begun = ""
	}
	return instructions, begun == ""
}

// wrongInstruction says why an instruction cannot be used, "" if it can be used.
func wrongInstruction(instruction string) string {
	word, rest, _ := strings.Cut(strings.ReplaceAll(instruction, "\t", " "), " ")
	rest = strings.TrimSpace(rest)
	word = strings.ToUpper(word)
	switch {
	case word == "ADD" || word == "COPY":
		return "the image has no files of the repository yet: the key build may name a command that uses them, and RUN may download files"
	case !slices.Contains(ownInstructions, word):
		return "must begin with " + strings.Join(ownInstructions[:len(ownInstructions)-1], ", ") + " or " + ownInstructions[len(ownInstructions)-1]
	case strings.ContainsFunc(instruction, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return "must not contain control characters"
	case rest == "":
		return "must say what to do"
	case strings.HasPrefix(rest, "--"):
		return "options of instructions, such as --mount, are not supported"
	case word == "RUN":
		return wrongCommand(rest)
	case word == "ENV" || word == "ARG":
		return wrongVariables(word, wordsOf(rest))
	case len(strings.Fields(rest)) > 1:
		return "must have one value"
	}
	return ""
}

// wrongCommand says why a command of RUN cannot be used.
func wrongCommand(command string) string {
	var list []any
	switch {
	case heredoc.MatchString(command):
		return "here-documents are not supported"
	case json.Unmarshal([]byte(command), &list) != nil: // it is for the shell
	case len(list) == 0 || slices.ContainsFunc(list, func(word any) bool { _, ok := word.(string); return !ok }):
		return "must be a command, or a list of strings"
	}
	return ""
}

// wrongVariables says why variables cannot be set. ARG may leave out the values.
func wrongVariables(instruction string, words []string) string {
	for _, word := range words {
		name, _, given := strings.Cut(word, "=")
		if !given && instruction == "ENV" {
			return "must be NAME=value"
		}
		if wrong := wrongVariable(name); wrong != "" {
			return name + ": " + wrong
		}
	}
	return ""
}

// wordsOf splits the arguments of ENV and ARG as engines do: quotes and backslashes keep spaces
// inside a word.
func wordsOf(text string) (words []string) {
	word, quote := "", rune(0)
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && r == ' ':
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		}
		word += string(r)
	}
	if word != "" {
		words = append(words, word)
	}
	return words
}

// baseImage reads base_image. On the public service it names a release of the public server, or an
// image that is made from this server.
func (p *parser) baseImage() {
	const name = "base_image"
	var image string
	switch {
	case !asks(p.fields[name]):
	case json.Unmarshal(p.fields[name], &image) == nil && publicname.IsServer(image):
		p.remark(name, noReleases)
	default:
		p.problem("%s: may only be an image of the public server, which asks for nothing here: the platform chooses the image that it builds from. Add what the agent needs with dockerfile_lines where images are built, or deploy an image (source external_docker)", name)
	}
}
