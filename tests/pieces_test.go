package tests

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"testing"
)

// TestLongMessagesOfTheServerPassInPieces compares what comes, byte for byte.
func TestLongMessagesOfTheServerPassInPieces(t *testing.T) {
	p := shared.serve(t)
	direct := fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", shared.cluster.Address())
	const times = 500_000
	rows := fmt.Sprintf("SELECT repeat('x', %d) FROM generate_series(1, 20)", times)
	// repeat('x', times), all as text
	call := frame('F', "\x00\x00\x06\x56", "\x00\x00", "\x00\x02", "\x00\x00\x00\x01x",
		"\x00\x00\x00\x06", fmt.Sprint(times), "\x00\x00")
	for claim, sent := range map[string][]byte{
		"rows":          simpleQuery(rows),
		"a copy":        simpleQuery("COPY (" + rows + ") TO STDOUT"),
		"a call":        call,
		"a long notice": simpleQuery("DO $$ BEGIN RAISE NOTICE '%', repeat('x', 200000); END $$"),
	} {
		t.Run(claim, func(t *testing.T) {
			var got [2]string
			for i, dsn := range []string{direct, p.dsn("dba")} {
				w := dial(t, dsn)
				if _, err := w.conn.Write(inOneGo(sent, simpleQuery("SELECT '"+floodEnd+"'"))); err != nil {
					t.Fatal(err)
				}
				var all bytes.Buffer
				if err := readTo(io.TeeReader(w.conn, &all), floodEnd); err != nil || all.Len() < 200_000 {
					t.Fatalf("%d bytes, %v", all.Len(), err)
				}
				whole, _, _ := bytes.Cut(all.Bytes(), []byte(floodEnd)) // the rest may come later
				got[i] = fmt.Sprintf("%d bytes, %x", len(whole), sha256.Sum256(whole))
			}
			if got[0] != got[1] {
				t.Errorf("%s, want %s", got[1], got[0])
			}
		})
	}
}
