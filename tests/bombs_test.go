package tests

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestTextsBuiltToBreakTheParserHarmNobody sends them by both protocols, with
// and without a protected table, while another session works.
func TestTextsBuiltToBreakTheParserHarmNobody(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	bystander := connect(t, p.dsn(user))
	const n = 50_000
	repeat := strings.Repeat
	cases := []struct{ claim, sql, code string }{ // of the text that names a protected table
		{"operators", "SELECT age FROM patients WHERE 1 = 1" + repeat(" + 1", n), "54001"},
		{"one operator", "SELECT age " + repeat("+", n) + " 1 FROM patients", "54001"},
		{"joins", "SELECT 1 FROM patients" + repeat(" CROSS JOIN numbers", 12_000), "54001"},
		{"casts", "SELECT age" + repeat("::int", n) + " FROM patients", "54001"},
		{"unions", "SELECT age FROM patients" + repeat(" UNION SELECT 1", 15_000), "54001"},
		{"parentheses", "SELECT " + repeat("(", n) + "age" + repeat(")", n) + " FROM patients", "54001"},
		{"negations", "SELECT age FROM patients WHERE " + repeat("NOT ", n) + "true", "54001"},
		{"subqueries", repeat("SELECT * FROM (", 10_000) + "SELECT age FROM patients" +
			repeat(") q", 10_000), "54001"},
		{"comments inside comments", "SELECT age " + repeat("/*", 5000) + repeat("*/", 5000) +
			" FROM patients", "54001"},
		{
			"a million elements", "SELECT age FROM patients WHERE age IN (1" + repeat(",1", 1_000_000) + ")",
			"54000",
		},
		{"ten megabytes", "SELECT age FROM patients WHERE zip = '" + repeat("x", 10<<20) + "'", "54000"},
		{"ten megabytes of comment", "SELECT age FROM patients /*" + repeat("x", 10<<20) + "*/", "54000"},
	}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol,
		pgx.QueryExecModeDescribeExec,
	} {
		for i, c := range cases {
			t.Run(mode.String()+"/"+c.claim, func(t *testing.T) {
				oneIn(t, 3, i)
				conn := connect(t, p.dsn(user))
				started := time.Now()
				_, err := conn.Exec(t.Context(), c.sql, mode)
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != c.code {
					t.Errorf("%.200v, want %s", err, c.code)
				}
				if took := time.Since(started); took > 10*time.Second {
					t.Errorf("refused after %v", took)
				}
				// Without a protected table it is PostgreSQL's to answer, in its time.
				mustExec(t, conn, "SET statement_timeout = '2s'")
				_, err = conn.Exec(t.Context(), strings.ReplaceAll(c.sql, "patients", "zip_city"), mode)
				if err != nil && !errors.As(err, &refused) {
					t.Errorf("the session broke: %v", err)
				}
				if n := one[int](t, bystander, "SELECT count(*) FROM patients"); n != patients {
					t.Errorf("another session counts %d", n)
				}
			})
		}
	}
}
