package dotenv_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/dotenv"
)

// TestAFileIsReadAsPythonReadsIt has what python-dotenv 1.1.0 returns for the same file, apart from
// the lines that it cannot read.
func TestAFileIsReadAsPythonReadsIt(t *testing.T) {
	t.Parallel()
	text := `# settings
PLAIN=one two # a comment
  export EXPORTED = yes
EMPTY=
HASH=a#b
SINGLE='$kept "as" is\n' # a comment
ESCAPED='it\'s \\'
DOUBLE="line\nnext \"quoted\" \\ a\tb"
no assignment
KEY="-----BEGIN KEY-----
abc # no comment
-----END KEY-----" # a comment
OPEN="open
MORE-OVER=1` + "\r\nLAST=\t9000\r\n"
	want := []dotenv.Variable{
		{Name: "PLAIN", Value: "one two", Line: 2},
		{Name: "EXPORTED", Value: "yes", Line: 3},
		{Name: "EMPTY", Value: "", Line: 4},
		{Name: "HASH", Value: "a#b", Line: 5},
		{Name: "SINGLE", Value: `$kept "as" is\n`, Line: 6},
		{Name: "ESCAPED", Value: `it's \`, Line: 7},
		{Name: "DOUBLE", Value: "line\nnext \"quoted\" \\ a\tb", Line: 8},
		{Name: "KEY", Value: "-----BEGIN KEY-----\nabc # no comment\n-----END KEY-----", Line: 10},
		{Name: "MORE-OVER", Value: "1", Line: 14},
		{Name: "LAST", Value: "9000", Line: 15},
	}
	variables, wrong := dotenv.Parse(text)
	if diff := cmp.Diff(want, variables); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{9, 13}, wrong); diff != "" {
		t.Errorf("wrong lines (-want +got):\n%s", diff)
	}
	for name, is := range map[string]bool{"A": true, "_a1": true, "": false, "1A": false, "MORE-OVER": false, "A ": false} {
		if dotenv.IsName(name) != is {
			t.Errorf("%q is a name: %v", name, !is)
		}
	}
}
