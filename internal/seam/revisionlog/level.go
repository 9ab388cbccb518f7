package revisionlog

import (
	"regexp"
	"slices"
	"strings"
)

// Level is how serious a line is.
type Level string

// The levels, the least serious first.
const (
	Debug    Level = "DEBUG"
	Info     Level = "INFO"
	Warning  Level = "WARNING"
	Error    Level = "ERROR"
	Critical Level = "CRITICAL"
)

var levels = []Level{Debug, Info, Warning, Error, Critical}

// Reaches reports whether the level is as serious as another one, or more. Any level reaches "".
func (l Level) Reaches(other Level) bool {
	return slices.Index(levels, l) >= slices.Index(levels, other)
}

const (
	// levelHead is how many bytes of a line are searched for its level. levelHeadJSON is that
	// number for a line that is JSON.
	levelHead, levelHeadJSON = 80, 1 << 10
)

var (
	levelWord   = regexp.MustCompile(`\b(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b`)
	levelMember = regexp.MustCompile(`(?i)"(?:level|levelname|log_level|severity)"\s*:\s*"(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)"`)
)

// LevelOf reads the level that a program gave a line, as loggers write it: a word in capitals
// near the beginning, or a member of a JSON object. A line without a level is Info.
func LevelOf(message string) Level {
	pattern, head := levelWord, message[:min(len(message), levelHead)]
	if strings.HasPrefix(message, "{") {
		pattern, head = levelMember, message[:min(len(message), levelHeadJSON)]
	}
	match := pattern.FindStringSubmatch(head)
	if match == nil {
		return Info
	}
	switch word := strings.ToUpper(match[1]); word {
	case "WARN":
		return Warning
	case "FATAL":
		return Critical
	default:
		return Level(word)
	}
}
