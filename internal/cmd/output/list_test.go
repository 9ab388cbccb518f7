package output

import (
	"strings"
	"testing"
)

// TestAListForAPerson is aligned and has a header.
func TestAListForAPerson(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	rows := [][]string{{"1", "a\tname", ""}, {"22", "b", "x"}}
	if err := printRows(&out, true, []string{"ID", "NAME", "LAST USED"}, rows); err != nil {
		t.Fatal(err)
	}
	if want := "ID  NAME    LAST USED\n1   a name  -\n22  b       x\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
