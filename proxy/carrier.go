package proxy

import "iter"

// carrier is a coroutine on which a course goes, and afterwards the next one of
// the loop: the stack of a new one would have to grow, by copying, at each login.
type carrier struct {
	course *course
	run    func()                  // the course's code
	resume func() (struct{}, bool) // it, until it gives way; false where it has ended, and the carrier too
	give   func(struct{}) bool     // way, until somebody resumes
	end    func()                  // a carrier without a course
}

// maxIdle is how many carriers without a course a loop keeps, as long as there is
// something to do.
const maxIdle = 16

// carry gives a course the carrier on which it is to run. It is for the loop's
// goroutine.
func (l *loop) carry(c *course, run func()) {
	if last := len(l.idle) - 1; last >= 0 {
		c.carrier = l.idle[last]
		l.idle = l.idle[:last]
	} else {
		c.carrier = newCarrier()
	}
	c.carrier.course, c.carrier.run = c, run
}

func newCarrier() *carrier {
	k := &carrier{}
	k.resume, k.end = iter.Pull(func(yield func(struct{}) bool) {
		k.give = yield
		for k.finish() && yield(struct{}{}) {
		}
	})
	return k
}

// retire ends the carriers without a course.
func (l *loop) retire() {
	for _, k := range l.idle {
		k.end()
	}
	l.idle = nil
}

// finish runs the course to its end, and says whether the loop keeps the carrier.
func (k *carrier) finish() bool {
	k.run()
	c, l := k.course, k.course.loop
	k.course, k.run, c.carrier = nil, nil, nil
	if !c.onLoop || len(l.idle) == maxIdle { // beside the loop, its list is another's
		return false
	}
	l.idle = append(l.idle, k)
	return true
}
