//go:build unix && !linux

package disk

import "syscall"

// Sync makes all files of the machine durable: this system cannot sync one file system.
func Sync(string) error { return syscall.Sync() }
