package child_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	// stranger is the user of the tests' server that is not root. tenant is the user that root
	// gives to a workspace.
	stranger, tenant = 54321, 54322
)

// The kernel treats all processes of one user alike, so the tests run once as root and once as
// a stranger: the test binary starts itself.
func asEachUser(t *testing.T) (root bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	t.Run("stranger", func(t *testing.T) {
		name, _, _ := strings.Cut(t.Name(), "/")
		dir := openDir(t)
		check.Must(t, os.Chown(dir, stranger, stranger))
		program, err := os.Open("/proc/self/exe")
		check.Must(t, err)
		defer program.Close()
		cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", "-test.run=^"+name+"$", "-test.v")
		cmd.ExtraFiles = []*os.File{program}
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Errorf("as a user that is not root: %v\n%s", err, out)
		}
	})
	return true
}

// givesUsers reports whether the test is root, whose programs can have users of their own, and
// checks that child says the same: no test of such programs passes on root without an attack.
func givesUsers(t *testing.T) bool {
	t.Helper()
	root := os.Geteuid() == 0 && child.Confines()
	if why := child.CanChangeUser(openDir(t)); (why == nil) != root {
		t.Errorf("programs get users of their own: %v (root: %t)", why, root)
	}
	return root
}

// openDir returns a temporary directory that every user may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check.Must(t, childtest.Open(dir))
	return dir
}

// ground is the target of the attacks: a server's directory, a confined program's own
// directory in it, and the files of others.
type ground struct {
	registry  *child.Registry
	data, own string
	// user is the user of confined programs, 0 for the server's own.
	user int
}

func newGround(t *testing.T, user int) ground {
	t.Helper()
	dir := openDir(t)
	g := ground{registry: open(t, t.TempDir()), data: filepath.Join(dir, "data"), user: user}
	g.own = filepath.Join(g.data, "own")
	check.Must(t, os.MkdirAll(g.own, 0o700))
	check.Must(t, os.MkdirAll(filepath.Join(g.data, "other"), 0o700))
	for _, file := range []string{"secret.key", "other/file"} {
		check.Must(t, os.WriteFile(filepath.Join(g.data, file), []byte("the key\n"), 0o600))
	}
	check.Must(t, child.Own(t.Context(), g.own, user))
	return g
}

// run runs a hostile script to its end and returns its output.
func (g ground) run(t *testing.T, script string) (child.Exit, string) {
	t.Helper()
	var out bytes.Buffer
	p := g.start(t, script, &out)
	<-p.Done()
	exit, err := p.Exit()
	check.Must(t, err)
	return exit, out.String()
}

func (g ground) start(t *testing.T, script string, out *bytes.Buffer) *child.Process {
	t.Helper()
	return start(t, g.registry, child.Command{
		Args: []string{"sh", "-c", script}, Dir: g.own, Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=" + g.own}, Stdout: out,
		Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user, Ports: []uint16{0}},
	})
}

// grounds are the grounds of a server that is root, with users for its workspaces and without,
// or of a server that is not root.
func grounds(t *testing.T) map[string]ground {
	t.Helper()
	if !asEachUser(t) {
		return map[string]ground{"not root": newGround(t, 0)}
	}
	return map[string]ground{"root": newGround(t, 0), "root with users": newGround(t, tenant)}
}

// TestAttackByWriting has a program that writes to all paths that a server's user may write
// to: programs that the server runs, settings and the kernel.
func TestAttackByWriting(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		outside := openDir(t)
		check.Must(t, os.Chmod(outside, 0o777))
		check.Must(t, os.WriteFile(filepath.Join(outside, "npm"), []byte("#!/bin/sh\n"), 0o777))
		check.Must(t, os.Chmod(filepath.Join(outside, "npm"), 0o777))
		for _, script := range []string{
			"echo evil > " + outside + "/npm", "echo evil > " + outside + "/new", "rm " + outside + "/npm", "mv " + outside + "/npm " + outside + "/git",
			"ln " + outside + "/npm own", "echo evil > /tmp/planted-" + name[:2], "echo evil > /etc/cron.d/evil",
			"cat /proc/sys/kernel/pid_max > /proc/sys/kernel/pid_max", "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
			"for disk in /dev/vd* /dev/sd* /dev/loop* /dev/nvme*; do head -c1 $disk && exit 0; done; exit 1",
			"for device in /dev/vd* /dev/sd* /dev/loop*; do true >>$device && exit 0; done; exit 1",
			fmt.Sprintf("echo 1000 > /proc/%d/oom_score_adj", os.Getpid()), "echo 0 > /proc/self/oom_score_adj",
			"cat ../secret.key", "cat ../other/file", "echo evil > ../new", fmt.Sprintf("cat /proc/%d/environ", os.Getpid()),
			"mknod node c 1 1 && cat node", "unshare -m true", "mount -t tmpfs none .",
		} {
			if exit, out := g.run(t, script); exit == (child.Exit{}) || strings.Contains(out, "the key") {
				t.Errorf("%s: %s: %s, %s", name, script, exit, out)
			}
		}
		for _, script := range []string{
			"echo mine > file && mkdir dir && mv file dir && rm -r dir", "mktemp", "echo > /dev/null && head -c1 /dev/urandom >/dev/null", "cat /proc/self/stat /proc/cpuinfo /proc/sys/kernel/pid_max",
			"echo there | cat <&0 >/dev/stdout", "ls -l /usr /etc/ssl", "git init -q repository && cd repository && git status",
		} {
			if exit, out := g.run(t, script); exit != (child.Exit{}) {
				t.Errorf("%s: %s, which any program may: %s\n%s", name, script, exit, out)
			}
		}
	}
}

// TestAttackOnProcesses has a program that kills, slows or looks into the server and another
// tenant's program.
func TestAttackOnProcesses(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		victim := start(t, g.registry, child.Command{
			Args: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin", "PASSWORD=open-sesame"},
			Confine: child.Confinement{Private: g.data, User: min(g.user, 1) * (g.user + 1)},
		})
		for _, pid := range []int{os.Getpid(), victim.Pid()} {
			for _, script := range []string{
				"kill -9 %d", "kill -STOP %d", "prlimit --pid %d --cpu=1000:1000", "prlimit --pid %d --nofile=1000:1000", "renice -n 19 -p %d",
				"taskset -p 1 %d", "chrt -i -p 0 %d", "ionice -c 3 -p %d", "echo 1000 > /proc/%d/oom_score_adj",
				"cat /proc/%d/environ", "readlink /proc/%d/fd/0", "ls /proc/%d/cwd/", "cat /proc/%d/root/etc/hostname", "head -c1 /proc/%d/mem",
			} {
				script = fmt.Sprintf(script, pid)
				if exit, out := g.run(t, script); exit == (child.Exit{}) || strings.Contains(out, "open-sesame") {
					t.Errorf("%s: %s: %s, %s", name, script, exit, out)
				}
			}
		}
		if g.user == 0 {
			if exit, out := g.run(t, "renice -n 19 -u $(id -u)"); exit == (child.Exit{}) {
				t.Errorf("%s: slowed all programs of the user: %s", name, out)
			}
		}
		for _, script := range []string{"ulimit -n 100", "nice -n 5 true", "taskset 1 true", "prlimit --cpu=100:100 true", "chrt -i 0 true", "ionice -c 3 true"} {
			if exit, out := g.run(t, script); exit != (child.Exit{}) {
				t.Errorf("%s: %s, which a program may do to itself: %s\n%s", name, script, exit, out)
			}
		}
		check.Must(t, victim.Kill())
	}
}

// TestAttackByAbstractSocket has a program that connects to a service of the same user by a name
// that has no file.
func TestAttackByAbstractSocket(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		address := fmt.Sprintf("@slipway-test-%d-%d", os.Getpid(), g.user)
		service, err := net.Listen("unix", address)
		check.Must(t, err)
		defer service.Close()
		var out bytes.Buffer
		p := start(t, g.registry, child.Command{
			Args: []string{"/proc/self/exe"}, Dir: g.own, Stdout: &out, Env: []string{"MODE=connect", "NETWORK=unix", "ADDR=" + address},
			Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user},
		})
		<-p.Done()
		if exit, err := p.Exit(); err != nil || exit == (child.Exit{}) {
			t.Errorf("%s: connected: %s, %v, %s", name, exit, err, &out)
		}
	}
}

// carriedOut is the beginning of the lines that callSystem prints.
const carriedOut = "the kernel carries out "

// callSystem makes the system calls that TestAttackBySystemCalls attacks with, and prints the
// names of the calls that the kernel carries out.
func callSystem() {
	var ring [15]uint64 // the kernel's struct io_uring_params
	if fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&ring)), 0); errno == 0 {
		fmt.Println(carriedOut+"io_uring_setup", fd)
	}
	for _, protocol := range []int{unix.IPPROTO_MPTCP, unix.IPPROTO_SMC} {
		if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, protocol); err == nil {
			fmt.Println(carriedOut+"socket", protocol, fd)
		}
	}
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); err == nil {
		fmt.Println(carriedOut + "keyctl")
	}
	for _, c := range []struct{ call, control, first, second uintptr }{
		{unix.SYS_SHMGET, unix.SYS_SHMCTL, 1, 0o1600}, {unix.SYS_SEMGET, unix.SYS_SEMCTL, 1, 0o1600}, {unix.SYS_MSGGET, unix.SYS_MSGCTL, 0o1600, 0},
	} {
		if made, _, errno := unix.Syscall(c.call, 0, c.first, c.second); errno != unix.ENOSYS {
			fmt.Println(carriedOut+"call", c.call, errno)
			unix.Syscall(c.control, made, 0, 0) // it removes the object
		}
	}
	name, err := unix.BytePtrFromString(fmt.Sprintf("slipway-%d", os.Getpid()))
	if err != nil {
		panic(err)
	}
	if _, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0); errno != unix.ENOSYS {
		fmt.Println(carriedOut+"mq_open", errno)
		unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) // it may not exist
	}
}

// TestAttackBySystemCalls has a program that makes the system calls which bypass Landlock: for
// example, a ring makes sockets of a protocol that Landlock's rules for ports do not cover.
func TestAttackBySystemCalls(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	const attacking = "SYSTEM_CALLS"
	if os.Getenv(attacking) != "" { // this is the program
		callSystem()
		return
	}
	for name, g := range grounds(t) {
		var out bytes.Buffer
		p := start(t, g.registry, child.Command{
			Args: []string{"/proc/self/exe", "-test.run=^TestAttackBySystemCalls$"}, Dir: g.own, Stdout: &out, Env: []string{attacking + "=1"},
			Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user, Ports: []uint16{0}},
		})
		<-p.Done()
		if exit, err := p.Exit(); err != nil || exit != (child.Exit{}) || !strings.HasPrefix(out.String(), "PASS") {
			t.Errorf("%s: %s, %v, %s", name, exit, err, &out)
		}
	}
}

// TestAProgramThatCannotHaveItsUserLeavesNoOutputOpen as the server that gives it the user is not
// root.
func TestAProgramThatCannotHaveItsUserLeavesNoOutputOpen(t *testing.T) { //nolint:paralleltest // it counts the files of this process
	if asEachUser(t) {
		return
	}
	registry := open(t, openDir(t))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close the files
	count := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		check.Must(t, err)
		return len(files)
	}
	before := count()
	command := child.Command{Args: []string{"/bin/true"}, Confine: child.Confinement{User: tenant}}
	for _, command.Stderr = range []io.Writer{nil, io.Discard} {
		if _, err := registry.Start(command); !errors.Is(err, os.ErrPermission) {
			t.Errorf("got %v", err)
		}
	}
	if after := count(); after > before {
		t.Errorf("%d files are open, and %d were before", after, before)
	}
}

// TestAttackByAnotherUsersPowers has a program with a user of its own that does to the
// server's files the actions that only their owner may do.
func TestAttackByAnotherUsersPowers(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	if !givesUsers(t) {
		return
	}
	g := newGround(t, tenant)
	service, err := net.Listen("unix", filepath.Join(openDir(t), "socket"))
	check.Must(t, err)
	defer service.Close()
	for _, script := range []string{
		"chmod 777 " + g.data, "chmod 666 ../secret.key", "chown 54322 ../secret.key", "touch -d 2000-01-01 ../secret.key", "setpriv --reuid 0 true",
		"cat /etc/shadow", "ls /root", "ls " + g.data, "cat ~root/.bashrc",
		"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"" + service.Addr().String() + "\")'",
	} {
		if exit, out := g.run(t, script); exit == (child.Exit{}) {
			t.Errorf("%s: %s, %s", script, exit, out)
		}
	}
	if exit, out := g.run(t, "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'"); exit != (child.Exit{}) {
		t.Errorf("the program cannot connect to any socket: %s, %s", exit, out)
	}
	if exit, out := g.run(t, "id -u; id -G; cat /proc/self/status | grep CapEff"); exit != (child.Exit{}) || !strings.HasPrefix(out, "54322\n54322\n") || !strings.Contains(out, "0000000000000000") {
		t.Errorf("the program is %s, %s", exit, out)
	}
}

// TestAttackOnFilesOfOthers has a program with a user of its own. It tries to read files below
// directories that every user may enter, although the modes of the files do not let such a
// user read them.
func TestAttackOnFilesOfOthers(t *testing.T) {
	if !givesUsers(t) {
		return
	}
	g := newGround(t, tenant)
	open := openDir(t)
	check.Must(t, os.MkdirAll(filepath.Join(open, "home", ".ssh"), 0o700))
	check.Must(t, os.Chmod(filepath.Join(open, "home"), 0o755))
	check.Must(t, os.MkdirAll(filepath.Join(open, "bin"), 0o755))
	temporary, err := os.CreateTemp("/tmp", "krb5cc_")
	check.Must(t, err)
	defer os.Remove(temporary.Name())
	check.Must(t, temporary.Close())
	secrets := []string{filepath.Join(open, "app.secret"), filepath.Join(open, "home", ".ssh", "id_ed25519"), filepath.Join(open, "bin", "token"), temporary.Name()}
	for _, secret := range secrets {
		check.Must(t, os.WriteFile(secret, []byte("the key\n"), 0o600))
	}
	// Its directory is closed.
	check.Must(t, os.Chmod(filepath.Join(open, "home", ".ssh", "id_ed25519"), 0o644))
	check.Must(t, os.WriteFile(filepath.Join(open, "readme"), []byte("for everybody\n"), 0o644))
	t.Setenv("PATH", filepath.Join(open, "bin")+":"+os.Getenv("PATH"))
	attempts := []string{"ls " + filepath.Join(open, "home", ".ssh"), "cat /etc/ssh/ssh_host_*_key", "ls /etc/ssl/private/", "cat /proc/1/environ"}
	for _, secret := range secrets {
		attempts = append(attempts, "cat "+secret)
	}
	for _, script := range attempts {
		if exit, out := g.run(t, script); exit == (child.Exit{}) || strings.Contains(out, "the key") {
			t.Errorf("%s: %s, %s", script, exit, out)
		}
	}
	if exit, out := g.run(t, "cat "+filepath.Join(open, "readme")); exit != (child.Exit{}) {
		t.Errorf("a file for everybody is not read: %s, %s", exit, out)
	}
}

// TestAttackWhereNoWayIsOpen has a server's directory below a directory that only root may
// enter: its programs get no users of their own there, and the reason names the directory.
func TestAttackWhereNoWayIsOpen(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(openDir(t), "closed")
	check.Must(t, os.Mkdir(closed, 0o700))
	for _, private := range []string{filepath.Join(closed, "data"), filepath.Join(closed, "deep", "data")} {
		if err := child.CanChangeUser(private); err == nil || os.Geteuid() == 0 && !strings.Contains(err.Error(), closed) {
			t.Errorf("%s: %v", private, err)
		}
	}
}

// TestAttackOnPorts has a program that takes the port which another program was to get, and
// the invoke token that comes there.
func TestAttackOnPorts(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		check.Must(t, err)
		address := free.Addr().String()
		check.Must(t, free.Close())
		for at, may := range map[string]bool{address: false, "127.0.0.1:0": true} {
			var out bytes.Buffer
			p := start(t, g.registry, child.Command{
				Args: []string{"/proc/self/exe"}, Dir: g.own, Stdout: &out, Env: []string{"MODE=listen", "ADDR=" + at},
				Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user, Ports: []uint16{0}},
			})
			<-p.Done()
			if exit, err := p.Exit(); err != nil || (exit == child.Exit{}) != may {
				t.Errorf("%s: listen at %s: %s, %v, %s", name, at, exit, err, &out)
			}
		}
	}
}

// TestAttackByOpenFiles has a program that wants to hold as many files and sockets open as the
// server may.
func TestAttackByOpenFiles(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		if exit, out := g.run(t, "[ $(ulimit -Hn) -le 8192 ] && ulimit -n $(ulimit -Hn) && ! (ulimit -Hn 8193)"); exit != (child.Exit{}) {
			t.Errorf("%s: %s, %s", name, exit, out)
		}
	}
}

// TestAttackByInheritedFiles has a program that looks for a file which the server was started with,
// and which no other program may open.
func TestAttackByInheritedFiles(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		file := filepath.Join(t.TempDir(), "inherited")
		inherited, err := unix.Open(file, unix.O_CREAT|unix.O_WRONLY, 0o600) // without O_CLOEXEC
		check.Must(t, err)
		exit, out := g.run(t, "ls -l /proc/self/fd")
		check.Must(t, unix.Close(inherited))
		if exit != (child.Exit{}) || strings.Contains(out, file) {
			t.Errorf("%s: %s, %s", name, exit, out)
		}
	}
}

// TestAttackByProcesses has a program that starts as many processes as the kernel lets it. Where no
// control group bounds them, its user may have some thousands: a server without a thread ends.
func TestAttackByProcesses(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	if !givesUsers(t) {
		return
	}
	if child.CanLimit() == nil {
		return
	}
	g := newGround(t, tenant)
	if exit, out := g.run(t, "prlimit --nproc --noheadings --raw --output SOFT,HARD"); exit != (child.Exit{}) || out != "8192 8192\n" {
		t.Errorf("the program may have so many processes: %s, %s", out, exit)
	}
	if exit, out := g.run(t, "prlimit --nproc=8193:8193 true"); exit == (child.Exit{}) {
		t.Errorf("the program has raised its limit: %s", out)
	}
	if exit, out := g.run(t, "prlimit --nproc=1:1 sh -c '(true)'"); exit == (child.Exit{}) {
		t.Errorf("the kernel does not count the processes of the user: %s", out)
	}
}
