package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

const backupLong = `Write a data directory to FILE, also while a server uses it. All records are of one moment. The files
that the records name are included: uploads, builds, pushed images, logs. FILE also holds the key of
all secrets: keep it as safe as the data directory. Caches of builds are left out, and so are files
that agents have written to their home directories.

Agents may leave files in their builds that nobody can read, for example because their paths are too
long for the system, and files of any size that consist of holes. The command names them on standard
error, and the rest is in FILE.

FILE "-" is standard output. An earlier FILE is replaced when the new backup is complete.`

func newBackup() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a data directory to a file, also while a server uses it",
		Long:  backupLong,
		Args:  exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var skipped skipped
			write := func(w io.Writer) error { return standalone.Backup(cmd.Context(), data, w, skipped.add) }
			if args[0] == "-" {
				return errors.Join(write(cmd.OutOrStdout()), skipped.report(cmd.ErrOrStderr()))
			}
			if err := outside(args[0], data); err != nil {
				return err
			}
			return errors.Join(writeWhole(args[0], write), skipped.report(cmd.ErrOrStderr()))
		},
	}
	cmd.Flags().StringVar(&data, "data", ".slipway", "data directory of a server on this machine")
	return cmd
}

// skipped are the files that a backup does without. An agent may make any number of them.
type skipped struct {
	count int
	first []string
}

func (s *skipped) add(name string, why error) {
	if s.count++; len(s.first) < 10 {
		// The error may repeat a path of any length.
		if cause, ok := errors.AsType[syscall.Errno](why); ok {
			why = cause
		}
		s.first = append(s.first, fmt.Sprintf("%.300q: %v\n", name, why))
	}
}

// report says which files are not in the backup.
func (s *skipped) report(w io.Writer) error {
	if s.count == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%d files or directories are not in the backup, for example:\n%s", s.count, strings.Join(s.first, ""))
	return err
}

// outside returns an error for a file in the data directory: each later backup would hold it.
func outside(file, data string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if data, err = filepath.Abs(data); err != nil {
		return err
	}
	if below, err := filepath.Rel(data, file); err == nil && filepath.IsLocal(below) {
		return exit.Usagef("FILE must be outside of the data directory %s, because later backups would hold it", data)
	}
	return nil
}

// writeWhole writes a file that appears under its name only when it is complete. What is there and
// is no regular file, such as a pipe, a device or a link to /dev/stdout, is written to instead.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	if existing, err := os.Lstat(name); err == nil && !existing.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	// Only this user can read it.
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

const restoreLong = `Make a data directory from FILE, which slipway backup has written. The directory must not exist, or be empty.

Built agents are in the data directory, and their files contain its path: restore to the path of the
original directory, or deploy these agents again afterwards, with slipway deploy DIR --force
or slipway deploy --repo URL. The command says so if the paths differ.

FILE "-" is standard input.`

func newRestore() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory from a backup",
		Long:  restoreLong,
		Args:  exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			from := cmd.InOrStdin()
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				from = file
			}
			manifest, err := standalone.Restore(cmd.Context(), from, data)
			if errors.Is(err, fs.ErrExist) {
				return exit.Usage(fmt.Errorf("%w; choose another with --data", err))
			}
			if err != nil {
				return err
			}
			return restored(cmd.ErrOrStderr(), manifest, data)
		},
	}
	cmd.Flags().StringVar(&data, "data", ".slipway", "data directory to make")
	return cmd
}

// restored prints what was restored, and the remaining steps.
func restored(w io.Writer, manifest standalone.Manifest, data string) error {
	text := fmt.Sprintf("restored the data of %s, which slipway %s wrote at %s\n",
		manifest.Data, manifest.Version, manifest.Taken.Format(time.RFC3339))
	path, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	if path != manifest.Data {
		// Without --force, the command would find that the sources have not changed.
		text += "the agents were built in another directory: deploy each of them again, with slipway deploy DIR --force or slipway deploy --repo URL\n"
	}
	_, err = io.WriteString(w, text)
	return err
}
