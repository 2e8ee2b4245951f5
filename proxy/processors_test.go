package proxy

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// crowded are processors that as many want as the test says; they are the caller's
// to close.
func crowded(t *testing.T, loadavg string) processors {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loadavg")
	if err := os.WriteFile(path, []byte(loadavg), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return processors(fd)
}

func wanted(by int) string { return "0.20 0.18 0.12 " + strconv.Itoa(by) + "/80 11206\n" }

func TestAProcessorIsToSpareWhereNobodyWaits(t *testing.T) {
	for loadavg, want := range map[string]bool{
		wanted(1):                    true,
		wanted(runtime.NumCPU()):     true,
		wanted(runtime.NumCPU() + 1): false,
		"":                           false,
		"0.20 0.18 0.12":             false,
		"0.20 0.18 0.12 ?/80":        false,
	} {
		p := crowded(t, loadavg)
		if got := p.spare(); got != want {
			t.Errorf("of %q: %t, want %t", loadavg, got, want)
		}
		p.close()
	}
	if processors(-1).spare() {
		t.Error("one is to spare though nobody tells")
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	if n, ok := runnable(text); !ok || n < 1 {
		t.Errorf("%q: %d, %t", text, n, ok)
	}
}

func TestALoopStaysAwakeWhereNobodyWantsItsProcessor(t *testing.T) {
	for loadavg, want := range map[string]bool{wanted(1): true, wanted(1000): false} {
		l := testLoop(t)
		onTheLoop(l, func() {
			l.processors.close()
			l.processors = crowded(t, loadavg)
			l.awakeUntil = time.Now().Add(time.Minute)
		})
		time.Sleep(20 * time.Millisecond)
		onTheLoop(l, func() {
			if awake := l.awakeUntil.After(time.Now()); awake != want {
				t.Errorf("%q: awake %t, want %t", loadavg, awake, want)
			}
			l.awakeUntil = time.Time{}
		})
	}
}

func TestALoopSleepsUntilWhoTakesHisTime(t *testing.T) {
	for _, slow := range []bool{true, false} {
		l := testLoop(t)
		onTheLoop(l, func() {
			l.processors.close()
			l.processors = -1 // nothing but the waiting itself moves the time
		})
		far, near := sockets(t)
		began := time.Now()
		waits := make(chan struct{})
		begin(t, l, near, func(c *course, s *socket) {
			defer func() { _ = s.Close() }()
			read := func() {
				close(waits)
				_, _ = s.Read(make([]byte, 1))
			}
			if slow {
				c.unhurried(read)
			} else {
				read()
			}
		})
		<-waits
		onTheLoop(l, func() {
			if looked := l.awakeUntil.After(began); looked == slow {
				t.Errorf("slow %t, and it looked without sleeping: %t", slow, looked)
			}
		})
		_ = far.Close()
	}
}
