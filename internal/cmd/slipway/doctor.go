package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/build/docker"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
)

const doctorLong = `Print one line for each thing that a server on this machine needs, and what to do if it is missing:
programs for builds, a container engine, the clock, the address, the data directory, its disk and
its keys. Then say what agents and builds that run as processes can still reach on this machine. The
result is valid for the user who runs this command: run it as the user who runs the server.

The exit code is 1 if a server could not start here. It starts without the programs and the engine.`

// versionLimit is how long a program may take to print its version, and a container engine to
// answer.
const versionLimit = 10 * time.Second

// finding is the result of one check of doctor.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	// Needed means that no server works without it.
	Needed bool   `json:"needed"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// examination is the JSON output of doctor.
type examination struct {
	Findings []finding `json:"findings"`
	Gaps     []string  `json:"gaps"`
}

func newDoctor() *cobra.Command {
	var data, listen string
	var keep disk.Keep
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a server on this machine would lack",
		Long:  doctorLong,
		Args:  exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := examination{Findings: examine(cmd.Context(), data, listen, cmp.Or(keep, disk.Default)), Gaps: []string{}}
			report.Gaps = append(report.Gaps, standalone.Gaps(data, child.DefaultUsers)...)
			var rows [][]string
			healthy := true
			for _, f := range report.Findings {
				state := "ok"
				if !f.OK {
					state, healthy = "missing", healthy && !f.Needed
				}
				rows = append(rows, []string{state, f.What, f.Found, f.Remedy})
			}
			for _, gap := range report.Gaps {
				rows = append(rows, []string{"gap", gap})
			}
			if len(report.Gaps) == 0 {
				rows = append(rows, []string{"ok", "This machine enforces all bounds of agents and builds. Agents that listen at $PORT must check SLIPWAY_INVOKE_TOKEN: other agents can connect there."})
			}
			if err := output.Print(cmd, report, []string{"STATE", "WHAT", "FOUND", "TO DO"}, rows); err != nil {
				return err
			}
			if !healthy {
				return errors.New("a server would not work here")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", ".slipway", "directory that a server would keep everything in")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address that a server would listen on")
	cmd.Flags().Var(keepFree(&keep), "keep-free", "how much of the disk a server would keep free, as 2GiB, 10% or 0 (default 5%, at most 512MiB)")
	return output.WithJSON(cmd)
}

// examine makes all checks, one after the other.
func examine(ctx context.Context, data, listen string, keep disk.Keep) []finding {
	return []finding{
		program(ctx, "git", "2.0", "install git, if agents come from repositories"),
		program(ctx, "python3", "3.11", "install Python 3.11 or newer, if agents are written in Python"),
		program(ctx, "node", "20.0", "install Node 20 or newer, if agents are written in JavaScript"),
		engine(ctx),
		machineClock(data),
		address(listen, data),
		directory(data),
		room(data, keep, nil),
		sealingKeys(data),
	}
}

// engine looks for the container engine itself: a server needs no program to reach it.
func engine(ctx context.Context) finding {
	f := finding{What: "docker", OK: true, Found: "an engine answers"}
	images, err := docker.Open(ctx, docker.Config{EngineLimit: versionLimit})
	if err == nil {
		err = images.Close()
	}
	if err != nil {
		f.OK, f.Found, f.Remedy = false, err.Error(), "start Docker for this user, if agents come as images"
	}
	return f
}

var version = regexp.MustCompile(`(\d+)\.(\d+)`)

// program looks for a program with at least the given version. A server starts without it.
func program(ctx context.Context, name, least, remedy string) finding {
	f := finding{What: name, Remedy: remedy}
	path, err := exec.LookPath(name)
	if err != nil {
		f.Found = "there is none in $PATH"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		f.Found = fmt.Sprintf("%s does not say its version: %v", path, err)
		return f
	}
	f.Found, _, _ = strings.Cut(strings.TrimSpace(string(said)), "\n")
	if f.OK = !older(version.FindStringSubmatch(f.Found), version.FindStringSubmatch(least)); f.OK {
		f.Remedy = ""
	}
	return f
}

// older reports whether a version is older than another version; a missing version is older.
func older(version, least []string) bool {
	if version == nil {
		return true
	}
	for part := 1; part < len(least); part++ {
		have, errHave := strconv.Atoi(version[part])
		want, errWant := strconv.Atoi(least[part])
		if errHave != nil || errWant != nil || have != want {
			return have < want
		}
	}
	return false
}

// machineClock compares the clock with the time at which the records were written last. A clock
// that was set back lets expired keys in again.
func machineClock(data string) finding {
	now, file := time.Now().UTC(), filepath.Join(data, standalone.DatabaseFile)
	f := finding{What: "clock", OK: true, Found: now.Format(time.RFC3339)}
	if info, err := os.Stat(file); err == nil && info.ModTime().After(now) {
		f.OK, f.Remedy = false, "set the clock of this machine"
		f.Found += ", but " + file + " was written at " + info.ModTime().UTC().Format(time.RFC3339)
	}
	return f
}

// address tries to listen. An address in use is fine while a server uses the data directory: that
// directory does not tell where its server listens, because a proxy may have the known address.
func address(listen, data string) finding {
	f := finding{What: "address " + listen, OK: true, Needed: true, Found: "free"}
	listener, err := net.Listen("tcp", listen)
	if err == nil {
		err = listener.Close()
	}
	if err == nil {
		return f
	}
	if errors.Is(err, syscall.EADDRINUSE) && standalone.InUse(data) {
		f.Found = "in use, and a server uses " + data
		return f
	}
	f.OK, f.Found, f.Remedy = false, err.Error(), "choose another with slipway serve --listen"
	return f
}

// existing returns the directory, or the first directory above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// room compares the free space of the disk with the space that a server keeps free. A server starts
// with less, and refuses what adds data. A nil look asks the system.
func room(data string, keep disk.Keep, look disk.Look) finding {
	f := finding{What: "disk of " + data, OK: true, Found: "has room"}
	if err := disk.Open(existing(data), keep, look, slog.New(slog.DiscardHandler)).Room(); err != nil {
		f.OK, f.Found, f.Remedy = false, err.Error(), "make room, or choose a directory on another disk with slipway serve --data"
	}
	return f
}

// probeSize is how much a test writes, in bytes: more than a file system holds beside its blocks.
const probeSize = 64 << 10

// directory tries to write to the place of the data.
func directory(data string) finding {
	f := finding{What: "directory " + data, OK: true, Needed: true, Found: "can be written to"}
	file, err := os.CreateTemp(existing(data), ".slipway-doctor-*")
	if err == nil {
		// A full disk still has room for an empty file.
		_, written := file.Write(make([]byte, probeSize))
		err = errors.Join(written, file.Sync(), file.Close(), os.Remove(file.Name()))
	}
	if err != nil {
		f.OK, f.Found, f.Remedy = false, err.Error(), "choose another with slipway serve --data"
	}
	return f
}

// sealingKeys reads the keys that have sealed the secrets of the data directory.
func sealingKeys(data string) finding {
	f := finding{What: "keys of " + data, OK: true, Needed: true, Found: "can be read"}
	path := filepath.Join(data, standalone.KeyFile)
	_, missing := os.Stat(path)
	_, unused := os.Stat(filepath.Join(data, standalone.DatabaseFile))
	switch {
	case missing == nil:
		if _, err := keyfile.Load(path); err != nil {
			f.OK, f.Found = false, err.Error()
		}
	case errors.Is(missing, fs.ErrNotExist) && errors.Is(unused, fs.ErrNotExist):
		f.Found = "a server makes them when it starts"
	default:
		f.OK, f.Found = false, missing.Error()
	}
	if !f.OK {
		f.Remedy = "give the file to the user who runs the server, with the mode 0600, or restore a backup with slipway restore"
	}
	return f
}
