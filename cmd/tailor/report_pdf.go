package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

// browsers are the names that chromium goes by.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// printing bounds how long a browser may take.
const printing = 2 * time.Minute

// findBrowser looks for what prints HTML.
func findBrowser() (string, error) {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", &policyError{
		"chromium, which makes PDF, is not installed",
		"install it, or write --format html and print that",
	}
}

// asPDF has the browser print the HTML form. The page asks for nothing and has no
// scripts, and everything that the browser writes goes into a folder that is removed.
func (p *page) asPDF(ctx context.Context, browser string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "tailor-report-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	from, to := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.pdf")
	if err := atomicfile.Write(from, 0o600, p.asHTML); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, printing)
	defer cancel()
	args := []string{
		"--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
		"--user-data-dir=" + filepath.Join(dir, "profile"), "--no-pdf-header-footer",
		"--print-to-pdf=" + to,
	}
	if os.Geteuid() == 0 { // chromium has no sandbox for root
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, browser, append(args, "file://"+from)...)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	text, missing := os.ReadFile(to)
	if err == nil && (missing != nil || !bytes.HasPrefix(text, []byte("%PDF-"))) {
		err = errors.New("no PDF came of it")
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, &policyError{
			fmt.Sprintf("%s did not make a PDF: %v", browser, err),
			"nothing was written; write --format html and print that",
		}
	}
	return text, nil
}
