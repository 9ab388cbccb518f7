package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/slipway-run/slipway/internal/host/standalone"
)

// server is a slipway process.
type server struct {
	cmd *exec.Cmd
	standalone.Credentials
	// again starts it once more.
	again func(context.Context) (*server, error)
	// ready is how long it took from the start of the process to the first answer.
	ready time.Duration
}

// startServer starts a server on a data directory and waits until it answers. The arguments
// are the arguments of its command, which is serve by default.
func startServer(ctx context.Context, binary, data string, args ...string) (*server, error) {
	const address = "127.0.0.1:18474"
	// Most of this time is for a database that is fetched the first time.
	const limit = 3 * time.Minute
	if len(args) == 0 {
		args = []string{"serve"}
	}
	log, err := os.OpenFile(data+"/server.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &server{
		cmd:   exec.CommandContext(ctx, binary, slices.Concat(args, []string{"--listen", address, "--data", data})...),
		again: func(ctx context.Context) (*server, error) { return startServer(ctx, binary, data, args...) },
	}
	s.cmd.Stderr = log
	begun := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	for {
		err := answers(ctx, "http://"+address+"/ok")
		if err == nil {
			s.ready = time.Since(begun)
			s.Credentials, err = standalone.ReadCredentials(data)
		}
		if err == nil {
			return s, nil
		}
		if time.Since(begun) > limit {
			return nil, errors.Join(errors.New("the server does not answer; see "+log.Name()), err, s.cmd.Process.Kill())
		}
		time.Sleep(time.Millisecond)
	}
}

// answers returns nil if the URL can be read.
func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// stop ends the server and waits for it.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// residentMiB is the memory of the server's process, and peakMiB is its peak memory; both are
// 0 if the system does not report them.
func (s *server) residentMiB() float64 { return residentMiB(s.cmd.Process.Pid) }

func (s *server) peakMiB() float64 { return mebibytes(statusOf(s.cmd.Process.Pid).VmHWM) }

func residentMiB(pid int) float64 { return mebibytes(statusOf(pid).VmRSS) }

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func statusOf(pid int) procfs.ProcStatus {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStatus{}
	}
	status, _ := process.NewStatus() // it is empty if it cannot be read
	return status
}

// cpu is the processor time that the server's process has used, without the time of its
// agents; 0 if the system does not report it.
func (s *server) cpu() time.Duration { return cpuOf(s.cmd.Process.Pid) }

func cpuOf(pid int) time.Duration {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := process.Stat() // it is empty if it cannot be read
	return time.Duration(stat.CPUTime() * float64(time.Second))
}
