//go:build !race

package anonymize_test

// raceDetector says that everything takes ten times as long.
const raceDetector = false
