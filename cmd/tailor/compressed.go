package main

import (
	"compress/gzip"
	"errors"
	"io"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// maxWindow bounds what a zstd file can make its reader keep: what every decoder
// should support (RFC 8878 §3.1.1.1.2), and what zstd writes up to level 19.
const maxWindow = 8 << 20

// decompressed reads what a file of that name holds: its suffix tells how it is
// compressed, if at all. Closing it leaves the file open.
func decompressed(name string, r io.Reader) (io.ReadCloser, error) {
	switch filepath.Ext(name) {
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, &anonymize.CSVError{Reason: "the file has the suffix of gzip and is none"}
		}
		return z, nil
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// compressing has write's output compressed as the suffix of the name says.
func compressing(name string, write func(io.Writer) error) func(io.Writer) error {
	through := func(z io.WriteCloser) error { return errors.Join(write(z), z.Close()) }
	switch filepath.Ext(name) {
	case ".gz":
		return func(w io.Writer) error { return through(gzip.NewWriter(w)) }
	case ".zst":
		return func(w io.Writer) error {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				return err
			}
			return through(z)
		}
	}
	return write
}
