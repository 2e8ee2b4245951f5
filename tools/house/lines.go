package main

import (
	"bytes"
	"go/scanner"
	"go/token"
	"unicode/utf8"
)

// linesOf counts all lines.
func linesOf(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// codeLines counts the lines of a Go file on which there is anything but comments. A string
// over several lines is on all of them.
func codeLines(text []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := make(map[int]bool)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(lines)
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue // the scanner's own
		}
		first := file.Line(at)
		for i := range bytes.Count([]byte(literal), []byte{'\n'}) + 1 {
			lines[first+i] = true
		}
	}
}

// codeLinesOfSQL counts the lines of a script that are neither blank nor a comment alone.
func codeLinesOfSQL(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("--")) {
			n++
		}
	}
	return n
}

// longLines counts the lines that have too many characters. A tab is one.
func longLines(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if utf8.RuneCount(bytes.TrimRight(line, "\r\n")) > longest {
			n++
		}
	}
	return n
}
