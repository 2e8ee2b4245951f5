package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/hiatus-tailor/tailor/extension"
)

func runVersion(_ context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("version",
		"print the version, the commit and what tailor was built with", stderr)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	fmt.Fprintf(stdout, "tailor %s\ncommit %s\nbuilt with %s for %s/%s\n",
		extension.Version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitSuccess
}

// commit is what was built, as far as the build has noted it.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	return revision + modified
}
