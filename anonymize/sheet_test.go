package anonymize_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func read(t testing.TB, text string) *anonymize.Sheet {
	t.Helper()
	s, err := anonymize.ReadSheet(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hierarchy(t testing.TB, text string) *anonymize.Hierarchy {
	t.Helper()
	h, err := anonymize.ReadHierarchy(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSheetsReadQuotesDelimitersAndMarks(t *testing.T) {
	s := read(t, "\xef\xbb\xbfname;note\r\nx;\"a;b\"\"c\r\nd\"\r\ny;z\r\n")
	if s.Header()[0] != "name" || s.Rows() != 2 || s.Cells(1)[0] != "a;b\"c\nd" ||
		s.Delimiter() != ';' {
		t.Errorf("header %q, %d rows, cell %q", s.Header(), s.Rows(), s.Cells(1)[0])
	}
	if s.Line(1) != 4 {
		t.Errorf("the second row starts on line %d, want 4", s.Line(1))
	}
}

func TestFaultsOfFilesSayWhereAndQuoteNothing(t *testing.T) {
	ab := hierarchy(t, "secret1;g\nsecret2;g\n")
	encode := func(text string, columns ...anonymize.Column) error {
		s, err := anonymize.ReadSheet(strings.NewReader(text), 0)
		if err == nil {
			_, err = s.Encode(columns, "")
		}
		return err
	}
	readHierarchy := func(text string) error {
		_, err := anonymize.ReadHierarchy(strings.NewReader(text), 0)
		return err
	}
	column := anonymize.Column{Name: "a", Hierarchy: ab}
	for claim, c := range map[string]struct {
		err  error
		says string
	}{
		"an empty file":             {encode("", column), "empty"},
		"a header alone":            {encode("a\n", column), "empty"},
		"no columns":                {encode("a\nsecret1\n"), "no quasi-identifiers"},
		"an unknown column":         {encode("b\nsecret1\n", column), `no column "a"`},
		"an unlisted value":         {encode("a\nsecret1\nsecret3\n", column), "line 3"},
		"lines of other length":     {encode("a;b\nsecret1;1\nsecret2\n", column), "line 3"},
		"a stray quote":             {encode("a;b\nsecret1;x\"y\n", column), "line 2"},
		"a repeated name":           {encode("a;a\nsecret1;1\n", column), "column 2"},
		"levels that do not nest":   {readHierarchy("secret1;g;x\nsecret2;g;y\n"), "line 2"},
		"a value with two paths":    {readHierarchy("secret1;g\nsecret1;h\n"), "line 2"},
		"hierarchy lines that vary": {readHierarchy("secret1;g\nsecret2;g;h\n"), "line 2"},
		"an empty hierarchy":        {readHierarchy(""), "no values"},
	} {
		switch {
		case c.err == nil:
			t.Errorf("%s: no error", claim)
		case !strings.Contains(c.err.Error(), c.says):
			t.Errorf("%s: %q does not say %q", claim, c.err, c.says)
		case strings.Contains(c.err.Error(), "secret"):
			t.Errorf("%s: %q quotes a value", claim, c.err)
		}
	}
}

func TestEmptyCellsAreNullAndShareOnlyTheRoot(t *testing.T) {
	h := hierarchy(t, "x;g\ny;g\nz;h\n")
	table, err := read(t, "a;b\nx;1\n;2\ny;3\n").Encode([]anonymize.Column{{Name: "a", Hierarchy: h}},
		"")
	if err != nil {
		t.Fatal(err)
	}
	own := table.Columns()[0].Hierarchy
	leaf := table.Leaf(0, table.TupleOfRow()[1])
	var labels []string
	for l := range own.Height() {
		labels = append(labels, own.Label(anonymize.Node{Level: l, Group: own.Generalize(leaf, l)}))
	}
	if strings.Join(labels, " ") != "NULL NULL *" || own.Leaves() != 4 {
		t.Errorf("labels %v, %d leaves", labels, own.Leaves())
	}
	x, _ := own.Code("x")
	if share := own.Share(anonymize.Node{Level: 1, Group: own.Generalize(x, 1)}); share != 2.0/4 {
		t.Errorf("the group of x covers %v of a domain that NULL made one value larger", share)
	}
	if _, ok := h.NullCode(); ok {
		t.Error("the hierarchy that was passed in has changed")
	}
	single := hierarchy(t, "x\n").WithNull()
	if single.Height() != 2 || single.Groups(1) != 1 || single.Groups(0) != 2 {
		t.Errorf("height %d, %d groups at the root", single.Height(), single.Groups(single.Height()-1))
	}
}

func TestSubjectsAreCountedAndNotRows(t *testing.T) {
	s := read(t, "a;id\nx;1\nx;1\ny;2\nx;2\n")
	table, err := s.Encode([]anonymize.Column{{
		Name:      "a",
		Hierarchy: hierarchy(t, "x;*\ny;*\n"),
	}}, "id")
	if err != nil {
		t.Fatal(err)
	}
	if table.Subjects() != 2 || table.Rows() != 4 {
		t.Errorf("%d subjects of %d rows", table.Subjects(), table.Rows())
	}
	p := &anonymize.Problem{
		Table: table, Privacy: []anonymize.Privacy{anonymize.KAnonymity{K: 3}},
		Quality: anonymize.Loss{},
	}
	_, err = anonymize.Transform(p, []int{1})
	var problem *anonymize.ProblemError
	if !errors.As(err, &problem) {
		t.Errorf("3 subjects asked of 2: %v", err)
	}
	p.Privacy = []anonymize.Privacy{anonymize.KAnonymity{K: 2}}
	if tr, err := anonymize.Transform(p, []int{0}); err != nil || tr.Admissible ||
		tr.SuppressedRows != 1 {
		t.Errorf("at level 0: %+v, %v; want y, which only one subject has, to fail", tr, err)
	}
}

func FuzzSheet(f *testing.F) {
	for _, text := range []string{
		"a;b\nx;1\n", "", "a\n\"x", "a,b\n1\n", "\xef\xbb\xbfa\tb\nx\t\n",
		"a;a\n",
	} {
		f.Add(text)
	}
	h := hierarchy(f, "x;g\ny;g\nz;h\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := anonymize.ReadSheet(strings.NewReader(text), 0)
		if err != nil {
			return
		}
		for _, name := range s.Header() {
			table, err := s.Encode([]anonymize.Column{{Name: name, Hierarchy: h}}, "")
			if err != nil {
				continue
			}
			if table.Rows() != s.Rows() {
				t.Errorf("%d rows of %d", table.Rows(), s.Rows())
			}
		}
	})
}

func FuzzHierarchy(f *testing.F) {
	for _, text := range []string{
		"x;g;*\ny;g;*\n", "x\n", "x;1\nx;1\n", "a;b\nb;a\n", ";;\n",
		"x;\"\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := anonymize.ReadHierarchy(strings.NewReader(text), ';')
		if err != nil {
			return
		}
		h = h.WithNull()
		for l := range h.Height() {
			for leaf := range uint32(h.Leaves()) {
				n := anonymize.Node{Level: l, Group: h.Generalize(leaf, l)}
				if first, last := h.Range(n); leaf < first || leaf > last {
					t.Fatalf("leaf %d outside of its node at level %d", leaf, l)
				}
				if share := h.Share(n); share < 0 || share > 1 {
					t.Fatalf("share %v", share)
				}
			}
		}
	})
}

func TestASheetIsTheSameHoweverTheFileArrives(t *testing.T) {
	long := strings.Repeat("z", 1<<17)
	for _, text := range []string{
		"a;b\nx;1\n", "a;b\r\nx;\"1\r\n;\"\"\"\r\ny;2", "\xef\xbb\xbfa;b\n\"\n\n\";1\n",
		"a;b\n" + long + ";\"" + long + "\n\"\ny;2\n",
		"a;b\rx;1\r", "a;b\rx;1\n", "a;b\nx;1\r", "a;b\nx;\"1\n", "a;b\nx;1\n\x00", "a;b\nx;1\n\xff;2\n",
	} {
		whole, fault := anonymize.ReadSheet(strings.NewReader(text), 0)
		for _, slow := range []io.Reader{
			iotest.OneByteReader(strings.NewReader(text)),
			iotest.DataErrReader(strings.NewReader(text)),
		} {
			s, err := anonymize.ReadSheet(slow, 0)
			if fmt.Sprint(err) != fmt.Sprint(fault) {
				t.Errorf("%.40q: %v, at once %v", text, err, fault)
			}
			if fault == nil && (s.Rows() != whole.Rows() || s.Cells(0)[0] != whole.Cells(0)[0] ||
				s.Cells(1)[s.Rows()-1] != whole.Cells(1)[s.Rows()-1]) {
				t.Errorf("%.40q: other cells than at once", text)
			}
		}
	}
}

// TestARecordThatComesByTheByteTakesNoMoreMemory reads a record from a pipe that gives a byte at a
// time.
func TestARecordThatComesByTheByteTakesNoMoreMemory(t *testing.T) {
	text := "a;b\n" + strings.Repeat("z", 1<<18) + ";1\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := anonymize.ReadSheet(iotest.OneByteReader(strings.NewReader(text)), 0); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
		t.Errorf("%d MB for a record of 256 KB", taken>>20)
	}
}
