package tests

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestARefusalFailsTheTransactionAsAnErrorDoes(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol,
		pgx.QueryExecModeCacheStatement,
	} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE kept (n int)"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT name FROM patients", mode); err == nil {
			t.Fatal("not refused")
		}
		_, err = tx.Exec(t.Context(), "SELECT 1")
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "25P02" {
			t.Errorf("%s: after a refusal: %v, want 25P02", mode, err)
		}
		_ = tx.Rollback(t.Context())
		if _, err := conn.Exec(t.Context(), "SELECT * FROM kept"); err == nil {
			t.Errorf("%s: the refused transaction was committed", mode)
		}
	}
}

func TestARefusalInAPipelineFailsWhatFollowsUpToSync(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
		t.Fatal(n)
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT count(*) FROM numbers")
	batch.Queue("SELECT name FROM patients")
	batch.Queue("SELECT count(*) FROM numbers")
	results := conn.SendBatch(t.Context(), batch)
	var codes []string
	for range 3 {
		_, err := results.Exec()
		var answer *pgconn.PgError
		if errors.As(err, &answer) {
			codes = append(codes, answer.Code)
		}
	}
	_ = results.Close()
	if len(codes) == 0 || codes[0] != "42501" {
		t.Errorf("codes %v, want 42501", codes)
	}
	if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("after the batch the session counts %d", n)
	}
}
