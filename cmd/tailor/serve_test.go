package main

import (
	"io"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/proxy"
)

func TestServeLeadsToTheServerOfItsConnectionString(t *testing.T) {
	t.Setenv("PGPORT", "6543")
	for dsn, server := range map[string]string{
		"host=db.internal port=5433 user=tailor_owner": "db.internal:5433",
		"postgres://tailor_owner@one:5434/clinic":      "one:5434",
		"host=/run/postgresql user=tailor_owner":       "127.0.0.1:6543",
		"host=::1 user=tailor_owner":                   "[::1]:6543",
		"no connection string":                         proxy.DefaultConfig().Upstream,
	} {
		if o := accepted(t, "--service-dsn", dsn); o.proxy.Upstream != server {
			t.Errorf("%s leads to %s, want %s", dsn, o.proxy.Upstream, server)
		}
	}
	o := accepted(t, "--service-dsn", "host=one", "--upstream", "/run/postgresql/.s.PGSQL.5432")
	if o.proxy.Upstream != "/run/postgresql/.s.PGSQL.5432" {
		t.Errorf("leads to %s, against --upstream", o.proxy.Upstream)
	}
	for dsn, fault := range map[string]string{
		"postgres://tailor_owner@one:5434,two:5435/clinic":   "several servers",
		"host=db.internal user=tailor_owner sslmode=require": "upstream-tls",
	} {
		_, o := serveFlags(io.Discard)
		o.dsn = dsn
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	accepted(t, "--service-dsn", "host=one sslmode=require", "--upstream-tls", "require")
}
