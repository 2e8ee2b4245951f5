package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// identity tells files apart, whatever their names.
type identity struct {
	major, minor uint32 // of the device
	inode        uint64
}

// identify asks which file a name stands for and how large it is.
func identify(path string) (identity, int64, error) { return statx(unix.AT_FDCWD, path, 0) }

// identifyOpen asks it of an open file.
func identifyOpen(file *os.File) (identity, int64, error) {
	return statx(int(file.Fd()), "", unix.AT_EMPTY_PATH)
}

// statx does not ask for times: where somebody has seen them, the next write gives
// the file a time of its own, finer than the clock's tick, which a flush may have
// to write to the disk as well. On ext4 without a journal (Linux 6.18) that is a
// third of the flush.
func statx(directory int, path string, flags int) (identity, int64, error) {
	var s unix.Statx_t
	for {
		err := unix.Statx(directory, path, flags, unix.STATX_INO|unix.STATX_SIZE, &s)
		if err == nil {
			return identity{s.Dev_major, s.Dev_minor, s.Ino}, int64(s.Size), nil
		}
		if err != unix.EINTR {
			return identity{}, 0, &os.PathError{Op: "statx", Path: path, Err: err}
		}
	}
}
