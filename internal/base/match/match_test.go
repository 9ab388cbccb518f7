package match_test

import (
	"encoding/json"
	"testing"

	"github.com/slipway-run/slipway/internal/base/match"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	const document = `{"user": "ada", "n": 1, "big": 9007199254740993, "tags": ["a", "b", {"c": 1, "d": 2}], "deep": {"x": null, "y": {"z": true}}}`
	for filter, want := range map[string]bool{
		``:                                true,
		`null`:                            true,
		`{}`:                              true,
		`{"user": "ada"}`:                 true,
		`{"user": "Ada"}`:                 false,
		`{"user": null}`:                  false,
		`{"other": null}`:                 false,
		`{"n": 1.0}`:                      true,
		`{"n": "1"}`:                      false,
		`{"n": true}`:                     false,
		`{"big": 9007199254740993}`:       true,
		`{"big": 9007199254740992}`:       false,
		`{"tags": ["b", "a"]}`:            true,
		`{"tags": []}`:                    true,
		`{"tags": ["z"]}`:                 false,
		`{"tags": [{"d": 2}]}`:            true,
		`{"tags": "a"}`:                   false,
		`{"deep": {"x": null}}`:           true,
		`{"deep": {"y": {"z": true}}}`:    true,
		`{"deep": {"y": {"z": 1}}}`:       false,
		`{"deep": {}}`:                    true,
		`{"user": {}}`:                    false,
		`{"user": "ada", "n": 2}`:         false,
		`{"deep": {"x": null}, "n": 1e0}`: true,
	} {
		f, err := match.Parse(json.RawMessage(filter))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Matches(json.RawMessage(document)); got != want || err != nil {
			t.Errorf("filter %s: %t, %v; want %t", filter, got, err, want)
		}
	}
	if _, err := match.Parse(json.RawMessage(`{`)); err == nil {
		t.Error("a broken filter was taken")
	}
	if f, _ := match.Parse(json.RawMessage(`{"a": 1}`)); f.Empty() {
		t.Error("a filter with members is empty")
	}
}
