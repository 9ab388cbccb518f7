package child

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// PeerOf returns the user of the program that listens at the other end of a connection.
func PeerOf(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var found *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { found, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(found.Uid), nil
}
