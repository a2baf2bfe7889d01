package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockedByte is the first byte behind those that SQLite locks. None of them holds
// data.
const lockedByte = 0x40000000 + 512

// lockRange locks the file for as long as f is open. The lock belongs to the open
// file, so it does not end when SQLite closes a descriptor of its own, and it
// holds under every name of the file. A file that cannot be written can be locked
// against writers only.
func lockRange(f *os.File, writable bool) error {
	kind := int16(unix.F_WRLCK)
	if !writable {
		kind = unix.F_RDLCK
	}

	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: lockedByte, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}

	return os.NewSyscallError("lock the database file", err)
}

// identify is a text that no other file of the disk has or will have, empty where the
// disk does not tell when a file was made: numbers alone are given again.
func identify(f *os.File) (string, error) {
	var what unix.Statx_t

	const want = unix.STATX_INO | unix.STATX_BTIME
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, want, &what)
	if err != nil || what.Mask&want != want {
		return "", os.NewSyscallError("statx", err)
	}

	return fmt.Sprintf("%d.%d.%d", what.Ino, what.Btime.Sec, what.Btime.Nsec), nil
}

// isMount reports whether a file is a mount of its own, as far as the kernel tells.
func isMount(path string) bool {
	var what unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &what)
	return err == nil && what.Attributes_mask&what.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
