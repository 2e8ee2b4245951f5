package tests

import "testing"

func TestStatementsOutliveADeallocateThatFails(t *testing.T) {
	p := shares(t, 2)
	for name, between := range map[string][]string{
		"in a failed transaction": {"BEGIN", "SELECT 1/0", "DEALLOCATE x", "ROLLBACK"},
		"that succeeds":           {"DEALLOCATE x"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, p.dsn(shared.reader(t))).PgConn()
			for n, text := range map[string]string{"x": "SELECT 2", "y": "SELECT count(*) FROM patients " +
				"WHERE age > 1", "z": "SELECT 1"} {
				if _, err := conn.Prepare(t.Context(), n, text, nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range between {
				_, _ = conn.Exec(t.Context(), text).ReadAll()
			}
			for _, n := range []string{"y", "y", "z", "z"} {
				if r := conn.ExecPrepared(t.Context(), n, nil, nil, nil).Read(); r.Err != nil {
					t.Errorf("%s: %v", n, r.Err)
				}
			}
		})
	}
	t.Run("that is prepared and never run", func(t *testing.T) {
		conn := connect(t, p.dsn(shared.reader(t))).PgConn()
		for n, text := range map[string]string{"x": "SELECT 2", "y": "SELECT count(*) FROM patients " +
			"WHERE age > 1", "d": "DEALLOCATE x"} {
			if _, err := conn.Prepare(t.Context(), n, text, nil); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if r := conn.ExecPrepared(t.Context(), "y", nil, nil, nil).Read(); r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
}
