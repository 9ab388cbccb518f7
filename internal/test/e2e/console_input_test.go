//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleInput acts as a person who starts runs with an input:
// testdata/browser/console-input.cjs contains the story.
func TestBrowserConsoleInput(t *testing.T) {
	s := newServer(t)
	repo := scriptedRepository(t)
	type object = map[string]any
	repo.write(t, "input.json", object{
		"type": "object", "required": []string{"subject"},
		"$defs": object{"Place": object{"title": "Place", "type": "object", "properties": object{
			"city": object{"type": "string"}, "height": object{"type": "number"},
		}}},
		"properties": object{
			"subject":  object{"type": "string", "title": "Subject", "description": "What to write about."},
			"tone":     object{"enum": []string{"short", "long"}, "default": "short"},
			"words":    object{"anyOf": []object{{"type": "integer"}, {"type": "null"}}},
			"draft":    object{"type": "boolean"},
			"place":    object{"$ref": "#/$defs/Place"},
			"messages": object{"type": "array", "items": object{"type": "object"}},
		},
	})
	repo.commit(t)
	d := s.deploy(t, repo, "main")
	type story struct {
		Findings, Complaints, Fields, Invalid   []string
		Defaults, Filled, Sent, Emptied, ByJSON object
		Hint                                    string
		More, Overflow                          int
	}
	var saw story
	browse(t, &saw, "console-input.cjs", s.BaseURL, s.APIKey, d.ID, pictures())
	says := func(content string) []any { return []any{object{"role": "user", "content": content}} }
	filled := object{
		"subject": "rain", "tone": "long", "words": 12.0, "draft": true, "place": object{"city": "Oslo", "height": 2.5}, "messages": says("write"),
	}
	want := story{
		Findings: []string{}, Complaints: []string{}, Hint: "Subject\nrequired · What to write about.",
		Defaults: object{"tone": "short"}, Filled: filled, Sent: filled,
		Fields: []string{"snow", "short", "Rome", ""}, Emptied: object{"place": object{"city": "Rome"}, "beside": []any{1.0}},
		Invalid: []string{"This is not JSON.", "This must be a JSON object.", "This is not JSON."},
		More:    1, ByJSON: object{"messages": says("by JSON")},
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}
