package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// errNotObtained says that a suite's source is not to be had on this machine:
// that is no difference, but no proof either.
var errNotObtained = errors.New("not obtained")

// obtained runs a script that downloads and builds what a suite needs, and
// returns the folder that it prints. Its exit code 3 is errNotObtained.
func obtained(ctx context.Context, script string, args ...string) (folder string, err error) {
	command := exec.CommandContext(ctx, script, args...)
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimSpace(string(output)), nil
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		err = errNotObtained
	}
	return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
}
