//go:build !race

package ecg_test

// raceDetector says that everything takes ten times as long.
const raceDetector = false
