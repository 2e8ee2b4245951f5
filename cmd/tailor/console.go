package main

import (
	"context"
	"log/slog"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/console"
)

// consoleFault is what is wrong with the address of a console, nil for nothing.
func consoleFault(address string) error {
	if address == "" {
		return nil
	}
	return console.Config{Listen: address}.Validate()
}

// openConsole serves the console at an address, empty for none, and returns
// what ends it.
func openConsole(
	ctx context.Context, address, dsn, upstream string, policies *catalog.Catalog, log *slog.Logger,
) (func(), error) {
	if address == "" {
		return func() {}, nil
	}
	config := console.Config{Listen: address, DSN: dsn, Upstream: upstream}
	c, err := console.Open(ctx, config, policies, drafter{dsn}, log)
	if err != nil {
		return nil, err
	}
	log.Info("console", "address", c.Address())
	return c.Close, nil
}
