// Command setvalued measures disassociation on the reference data and writes
// the section "Set-valued data" of docs/experiments.md and its plots.
//
//	go run ./tools/experiments/setvalued -data DIR -machine TEXT
//
// DIR is the folder of the reference data, see package refdata. Times depend
// on the machine; everything else is the same on every run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
	"github.com/hiatus-tailor/tailor/internal/setdata"
	"github.com/hiatus-tailor/tailor/tools/experiments/page"
)

func main() {
	data := flag.String("data", "", "folder of the reference data")
	docs := flag.String("docs", "docs", "folder to write to")
	machine := flag.String("machine", "an unnamed machine",
		"what the times were taken on, for the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, *docs, *machine); err != nil {
		fmt.Fprintln(os.Stderr, "setvalued:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data, docs, machine string) error {
	e, err := load(ctx, data)
	if err != nil {
		return err
	}
	e.machine = machine
	p := &page.Section{Name: "setvalued", Docs: docs}
	for _, part := range []func(*page.Section) error{
		e.introduce, e.byK, e.byPolicy, e.byCluster, e.secondDataSet, e.speed,
	} {
		if err := part(p); err != nil {
			return err
		}
	}
	return p.Write()
}

// experiments holds what all measurements need.
type experiments struct {
	ctx     context.Context
	machine string
	nhds    *disassociate.Dataset
	bms     *disassociate.Dataset
	icd     *utility.Taxonomy
	holders utility.Holders // of nhds
}

func load(ctx context.Context, data string) (*experiments, error) {
	e := &experiments{ctx: ctx}
	var err error
	if e.nhds, err = setdata.Load(filepath.Join(data, "setvalued",
		"nhds2010-631.txt.gz")); err != nil {
		return nil, err
	}
	if e.bms, err = setdata.Load(filepath.Join(data, "setvalued",
		"bms-webview-1.txt.gz")); err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(data, "icd9", "icd9cm-hierarchy.csv"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if e.icd, err = utility.ReadTaxonomy(file, "code", "category", "section", "chapter"); err != nil {
		return nil, err
	}
	e.holders = utility.HoldersOf(e.nhds, 1)
	return e, nil
}
