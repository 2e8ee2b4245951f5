//go:build race

package main

// raceDetector says that this binary needs several times the memory.
const raceDetector = true
