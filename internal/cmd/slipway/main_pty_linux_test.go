package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal is a terminal in which a test types.
type terminal struct {
	keys *os.File
	mu   sync.Mutex
	seen strings.Builder
}

// newTerminal returns both ends of a terminal.
func newTerminal() (keys, end *os.File, err error) {
	keys, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200}); err != nil {
		return nil, nil, err
	}
	end, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return keys, end, err
}

// watch keeps the output, until the other end is closed.
func (t *terminal) watch(done chan<- struct{}) {
	defer close(done)
	part := make([]byte, 4096)
	for {
		n, err := t.keys.Read(part)
		t.mu.Lock()
		t.seen.Write(part[:n])
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (t *terminal) screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.String()
}

// typed runs a command at a terminal: typed FILE command... Each line of the file waits for a
// text that follows the previous text (expect REGEXP), or types (type TEXT, as Go writes
// strings). The output becomes the value of $SCREEN and the content of the file screen. The
// command has the variables TERM, NO_COLOR, CI and PATH of the script; TERM is xterm by default.
func typed(ts *testscript.TestScript, _ bool, args []string) {
	keys, end, err := newTerminal()
	ts.Check(err)
	defer keys.Close()
	path, err := exec.LookPath(args[1])
	if err != nil {
		path = args[1]
	}
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), end, end, end
	cmd.Env = append(os.Environ(), "TERM="+cmp.Or(ts.Getenv("TERM"), "xterm"), "NO_COLOR="+ts.Getenv("NO_COLOR"), "CI="+ts.Getenv("CI"), "PATH="+ts.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(end.Close())
	t, done := &terminal{keys: keys}, make(chan struct{})
	go t.watch(done)
	if err := t.play(ts.ReadFile(args[0])); err != nil {
		ts.Check(cmd.Process.Kill())
		ts.Fatalf("%v (%v)", err, cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("%v; the screen shows %q", err, t.screen())
	}
	<-done
	ts.Setenv("SCREEN", t.screen())
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(t.screen()), 0o600))
}

// play follows the steps of a file.
func (t *terminal) play(steps string) error {
	from := 0
	for step := range strings.SplitSeq(strings.TrimSpace(steps), "\n") {
		verb, text, _ := strings.Cut(step, " ")
		if verb == "type" {
			keys, err := strconv.Unquote(text)
			if err != nil {
				return err
			}
			if _, err := t.keys.WriteString(keys); err != nil {
				return err
			}
			continue
		}
		at, err := t.await(regexp.MustCompile(text), from)
		if err != nil {
			return err
		}
		from = at
	}
	return nil
}

// await waits until a text appears, and returns where it ends.
func (t *terminal) await(text *regexp.Regexp, from int) (int, error) {
	deadline := time.NewTimer(readyLimit)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if at := text.FindStringIndex(t.screen()[from:]); at != nil {
			return from + at[1], nil
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			return 0, fmt.Errorf("%s does not appear; the screen shows %q", text, t.screen()[from:])
		}
	}
}
