package proxy

import (
	"testing"
	"time"
)

func TestARushIsOverOnce(t *testing.T) {
	a := &aftermath{}
	now := time.Now()
	for n, step := range []struct {
		logins int64
		after  time.Duration
		over   bool
	}{
		{0, 0, false},
		{crush - 1, time.Second, false},
		{0, time.Second, false}, // too few
		{crush - 1, time.Second, false},
		{0, time.Second, false}, // and too few again
		{crush - 1, time.Second, false},
		{1, time.Second, false}, // they still come
		{0, time.Second, true},
		{0, time.Second, false}, // not twice
		{crush, time.Second, false},
		{0, time.Second, false}, // too soon
		{1, time.Second, false},
		{0, aftermathPause, true},
		{0, aftermathPause, false},
	} {
		now = now.Add(step.after)
		a.logins.Add(step.logins)
		if over := a.over(now); over != step.over {
			t.Errorf("step %d: %t", n, over)
		}
	}
}
