package pattern_test

import (
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/pattern"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestMatches(t *testing.T) {
	t.Parallel()
	part, err := pattern.Compile(`b+|c`)
	check.Must(t, err)
	whole, err := pattern.CompileWhole(`b+|c`)
	check.Must(t, err)
	var none *pattern.Pattern
	for text, want := range map[string][2]bool{"abba": {true, false}, "bb": {true, true}, "c": {true, true}, "bc": {true, false}, "a": {}} {
		if got := [2]bool{part.Matches(text), whole.Matches(text)}; got != want || none.Matches(text) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if none.Size() != 0 || part.Size() == 0 {
		t.Errorf("the sizes are %d and %d", none.Size(), part.Size())
	}
}

// TestAttackPatternsThatCostMuch checks that no text makes a large program, and that the patterns
// which people write are small.
func TestAttackPatternsThatCostMuch(t *testing.T) {
	t.Parallel()
	for text, words := range map[string]string{
		"https://((a|a?){100}){5}":                             "larger than",
		"https://" + strings.Repeat("((a|a?){250})", 2):        "larger than",
		strings.Repeat("a{1000}", 100):                         "larger than",
		strings.Repeat("a{900,}", 2):                           "larger than",
		strings.Repeat(`\pL`, 100):                             "larger than",
		strings.Repeat("a", pattern.MaxBytes+1):                "longer than",
		"(((a{100}){100}){100})":                               "invalid repeat count",
		"(":                                                    "missing closing",
		"(?:" + strings.Repeat("(?i:k{0,900})|", 50) + "a{9})": "larger than",
	} {
		if _, err := pattern.Compile(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%.60s: %v, want %q", text, err, words)
		}
	}
	for _, text := range []string{
		"", `https://(?:[a-z0-9-]+\.)*example\.(?:com|org)(?::\d{2,5})?`, `^/threads/(?P<thread_id>[^/]+)/state$`,
		`^/(?P<id>[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12})$`,
		"^(?:" + strings.Repeat(`https://team-name\.example\.com|`, 30) + "https://a)$",
	} {
		if p, err := pattern.Compile(text); err != nil || p.Size() > pattern.MaxSize {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// TestTheSizeIsThatOfTheProgram compares the size with the program that package regexp makes.
func TestTheSizeIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"(a|a?){100}", "(.*a){160}", strings.Repeat("a?", 450), `(?:[^b]*[^c]?){120}`, "(?i)(k|s|a?){100}b", `\w{3,9}x{7,}`, "(a|b|c|d)*", "(?:ab{2,4}){3}"} {
		p, err := pattern.Compile(text)
		check.Must(t, err)
		parsed, err := syntax.Parse(text, syntax.Perl)
		check.Must(t, err)
		program, err := syntax.Compile(parsed.Simplify())
		check.Must(t, err)
		if made := len(program.Inst); made > 2*p.Size()+10 {
			t.Errorf("%.30s: %d instructions for a size of %d", text, made, p.Size())
		}
	}
}

// BenchmarkCompileWhole compiles a pattern of origins.
func BenchmarkCompileWhole(b *testing.B) {
	for b.Loop() {
		if _, err := pattern.CompileWhole(`https://([a-z0-9-]+\.)?example\.(com|org)(:[0-9]{1,5})?`); err != nil {
			b.Fatal(err)
		}
	}
}
