package proxy

import (
	"bytes"
	"runtime"
	"strconv"
	"syscall"
)

// processors tells whether one is to spare. It is a descriptor of /proc/loadavg, or
// negative where the kernel has none: nothing is to spare there.
type processors int

func openProcessors() processors {
	fd, err := syscall.Open("/proc/loadavg", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return processors(fd)
}

func (p processors) close() {
	if p >= 0 {
		_ = syscall.Close(int(p))
	}
}

// spare says that no more want to run, on the whole machine, than there are
// processors for this process: nobody waits for the one on which the caller, who
// counts, does nothing. Where they are more, somebody may. Asking takes half a
// microsecond.
func (p processors) spare() bool {
	if p < 0 {
		return false
	}
	text := make([]byte, 64) // the kernel's form is shorter
	n, err := syscall.Pread(int(p), text, 0)
	if err != nil {
		return false
	}
	running, ok := runnable(text[:n])
	return ok && running <= runtime.NumCPU()
}

// runnable is how many want to run, in the form of /proc/loadavg (proc(5)):
// "0.20 0.18 0.12 1/80 11206".
func runnable(loadavg []byte) (int, bool) {
	before, _, ok := bytes.Cut(loadavg, []byte("/"))
	n, err := strconv.Atoi(string(before[bytes.LastIndexByte(before, ' ')+1:]))
	return n, ok && err == nil
}
