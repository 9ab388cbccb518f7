package lambda_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

func TestStoppedProcessTimesOut(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.Timeout = 300 * time.Millisecond }))
	pid := call[echoed](t, p, order{Do: "echo"}).PID
	eventually(t, "it waits for a call", func() bool { return p.Free("F") == 1 })
	check.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	eventually(t, "it stands still", func() bool { return stopped(t, pid) })
	_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"}))
	wantFailure(t, err, lambda.TypeTimeout, "timed out")
	call[echoed](t, p, order{Do: "echo"})
}

// stopped reports whether a process is stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check.Must(t, err)
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("T"))
}
