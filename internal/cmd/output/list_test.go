package output

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAListForAPerson is aligned and has a header.
func TestAListForAPerson(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	rows := [][]string{{"1", "a\tname", ""}, {"22", "b", "x"}}
	check.Must(t, printRows(&out, true, []string{"ID", "NAME", "LAST USED"}, rows))
	if want := "ID  NAME    LAST USED\n1   a name  -\n22  b       x\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
