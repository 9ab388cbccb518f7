package match_test

import (
	"encoding/json"
	"testing"

	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/test/check"
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
		check.Must(t, err)
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

func TestAnd(t *testing.T) {
	t.Parallel()
	parse := func(text string) match.Filter {
		f, err := match.Parse(json.RawMessage(text))
		check.Must(t, err)
		return f
	}
	both := parse(`{"a": 1}`).And(parse(`{"b": 2}`)).And(parse(``)).And(parse(`{"c": 3}`))
	for document, want := range map[string]bool{
		`{"a": 1, "b": 2, "c": 3}`: true, `{"a": 1, "b": 2}`: false, `{"a": 1, "c": 3}`: false, `{"b": 2, "c": 3}`: false, `null`: false,
	} {
		if got, err := both.Matches(json.RawMessage(document)); got != want || err != nil {
			t.Errorf("%s: %t, %v; want %t", document, got, err, want)
		}
	}
	for _, f := range []match.Filter{both, parse(``).And(parse(`{"a": 1}`)), parse(`{"a": 1}`).And(match.Filter{})} {
		if ok, err := f.Matches(json.RawMessage(`{}`)); f.Empty() || ok || err != nil {
			t.Errorf("%v matches an empty document, or is empty", f)
		}
	}
	if !(match.Filter{}).And(match.Filter{}).Empty() {
		t.Error("the filter of nothing twice is not empty")
	}
}
