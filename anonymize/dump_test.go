package anonymize_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestDump(t *testing.T) {
	e := loadReference(t, "arx/adult", "adult", 7)
	table := e.table(t)
	p, _ := anonymize.NewPartition(table).Refine(context.Background(), anonymize.Refinement{Columns: upTo(7), Requirements: k5()})
	f, _ := os.Create("/tmp/local_dump.csv")
	w := bufio.NewWriter(f)
	for r := range table.Rows() {
		b := p.BlockOf()[table.TupleOfRow()[r]]
		for c := range 7 {
			if c > 0 {
				fmt.Fprint(w, ";")
			}
			n := p.Cover(b, c)
			fmt.Fprintf(w, "%s@%d", table.Columns()[c].Hierarchy.Label(n), n.Level)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	f.Close()
}
