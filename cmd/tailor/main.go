// Command tailor anonymizes data and serves it through a privacy proxy.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is one subcommand.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int
}

var commands = []command{
	{"disassociate", "k^m-anonymity of set-valued data", runDisassociate},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		for _, c := range commands {
			if c.name == os.Args[1] {
				os.Exit(c.run(ctx, os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
			}
		}
	}
	fmt.Fprintln(os.Stderr, "usage: tailor COMMAND [FLAGS]")
	os.Exit(2)
}
