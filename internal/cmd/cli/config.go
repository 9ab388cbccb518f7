package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// defaultConfig is where the framework configuration file usually is.
const defaultConfig = "framework.json"

// findConfig finds the framework configuration file of a directory: the named file, the file
// with the usual name, or the only JSON file at the root that names graphs.
func findConfig(dir, named string) (string, error) {
	if named != "" {
		return named, readConfig(filepath.Join(dir, named))
	}
	err := readConfig(filepath.Join(dir, defaultConfig))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return defaultConfig, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", err
	}
	var names []string
	for _, file := range files {
		if namesGraphs(file) {
			names = append(names, filepath.Base(file))
		}
	}
	switch len(names) {
	case 0:
		return "", fmt.Errorf("there is no agent at %s: no %s, nor another JSON file that names graphs. Make an agent with slipway new, or name the file with --config",
			dir, defaultConfig)
	case 1:
		return names[0], nil
	default:
		return "", fmt.Errorf("several files at %s name graphs: choose one with --config: %s", dir, strings.Join(names, ", "))
	}
}

// readConfig returns an error if a configuration file is so wrong that uploading it is
// useless.
func readConfig(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the framework configuration: %w", err)
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + strings.Count(string(text[:syntax.Offset]), "\n")
			return fmt.Errorf("%s:%d is not JSON: %w", file, line, err)
		}
		return fmt.Errorf("%s is not a JSON object: %w", file, err)
	}
	return nil
}

// namesGraphs reports whether a file is a framework configuration file.
func namesGraphs(file string) bool {
	text, err := os.ReadFile(file)
	var config struct {
		Graphs map[string]json.RawMessage `json:"graphs"`
	}
	return err == nil && json.Unmarshal(text, &config) == nil && len(config.Graphs) > 0
}
