package template

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// decode turns a node into maps, lists and scalars, with short intrinsic functions (!Sub x) in
// their long form ({"Fn::Sub": "x"}).
func decode(node *yaml.Node) (any, error) {
	if short, ok := strings.CutPrefix(node.Tag, "!"); ok && !strings.HasPrefix(node.Tag, "!!") {
		plain := *node
		plain.Tag = ""
		if plain.Kind == yaml.ScalarNode {
			plain.Tag = "!!str" // a function's argument is text, also if it looks like a number
		}
		argument, err := decode(&plain)
		if err != nil {
			return nil, err
		}
		if text, ok := argument.(string); ok && short == "GetAtt" {
			resource, attribute, _ := strings.Cut(text, ".")
			argument = []any{resource, attribute}
		}
		return map[string]any{longName(short): argument}, nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		return decodeMap(node)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, child := range node.Content {
			value, err := decode(child)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case yaml.ScalarNode:
		if node.Tag == "!!timestamp" {
			return node.Value, nil // a version like 2012-10-17
		}
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, fmt.Errorf("line %d: %w", node.Line, err)
		}
		return value, nil
	default:
		return nil, fmt.Errorf("line %d: anchors and aliases are not understood", node.Line)
	}
}

func decodeMap(node *yaml.Node) (any, error) {
	members := make(map[string]any, len(node.Content)/2)
	for i := 0; i < len(node.Content); i += 2 {
		key := node.Content[i]
		value, err := decode(node.Content[i+1])
		if err != nil {
			return nil, err
		}
		if _, twice := members[key.Value]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", key.Line, key.Value)
		}
		members[key.Value] = value
	}
	return members, nil
}

// longName returns the long form of a short intrinsic function's name.
func longName(short string) string {
	if short == "Ref" || short == "Condition" {
		return short
	}
	return "Fn::" + short
}

// commentsOf returns the comment above each member of a section.
func commentsOf(document *yaml.Node, section string) map[string]string {
	comments := map[string]string{}
	for i := 0; i+1 < len(document.Content); i += 2 {
		if document.Content[i].Value != section {
			continue
		}
		members := document.Content[i+1].Content
		for j := 0; j < len(members); j += 2 {
			comments[members[j].Value] = uncomment(members[j].HeadComment)
		}
	}
	return comments
}

// uncomment returns the paragraph right above; other paragraphs are headings.
func uncomment(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	lines := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
