package budget_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestValuesOfATextAreCounted compares the count with the decoded text. An empty list or object
// counts one value too many, and a member of an object one value, like its value.
func TestValuesOfATextAreCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`null`: 0, `[0,0,0]`: 3, `{"a":[0,0],"b":{"c":1}}`: 5, `"a,b[{"`: 0, `["\",[",","]`: 2, `["\\",0]`: 2, `["\\\",0"]`: 1, `"open,`: 0, `"open\",`: 0,
	} {
		if got := budget.Values([]byte(text)); got != want {
			t.Errorf("%s: got %d values, want %d", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "parts")
		text, err := json.Marshal(parts)
		check.Must(t, err)
		if got := budget.Values(text); got != len(parts) {
			t.Errorf("%s: got %d values, want %d", text, got, len(parts))
		}
	})
}

// TestATextThatArrivesInPartsHasAsManyValues cuts texts at every place, also inside strings and
// between a backslash and the character that it escapes.
func TestATextThatArrivesInPartsHasAsManyValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringOfN(rapid.RuneFrom([]rune(`"\,[{0`)), 0, 40, -1).Draw(t, "text"))
		want := budget.Values(text)
		for first := range len(text) + 1 {
			second := rapid.IntRange(first, len(text)).Draw(t, "second")
			tally := &budget.Tally{}
			tally.Add(text[:first])
			tally.Add(text[first:second])
			if got := tally.Add(text[second:]); got != want {
				t.Errorf("%s cut at %d and %d: got %d values, want %d", text, first, second, got, want)
			}
		}
	})
}

func TestAttackATextOfManyValues(t *testing.T) {
	t.Parallel()
	list := func(values int, value string) []byte {
		return []byte("[" + strings.Repeat(value+",", values-1) + value + "]")
	}
	for name, c := range map[string]struct {
		text []byte
		want bool
	}{
		"as many as may be": {list(budget.MostValues, "0"), false},
		"more":              {list(budget.MostValues+1, "0"), true},
		"long texts":        {list(1000, `"`+strings.Repeat(",", 10_000)+`"`), false},
		"a long text":       {bytes.Repeat([]byte{'0'}, 10<<20), false},
	} {
		if got := budget.TooManyValues(c.text); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
