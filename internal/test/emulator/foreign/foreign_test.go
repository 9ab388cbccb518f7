package foreign_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/foreign"
)

// TestThePortIsGivenToNoOtherProgram checks that the port is none that the system chooses for
// programs which ask for any port.
func TestThePortIsGivenToNoOtherProgram(t *testing.T) {
	t.Parallel()
	first, last := 49_152, 65_535
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if !errors.Is(err, fs.ErrNotExist) {
		check.Must(t, err)
		_, err = fmt.Sscan(string(text), &first, &last)
		check.Must(t, err)
	}
	for range 100 {
		port, err := foreign.Port()
		check.Must(t, err)
		if first <= port && port <= last {
			t.Fatalf("port %d is in the range from %d to %d", port, first, last)
		}
	}
}
