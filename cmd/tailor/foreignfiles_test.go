package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// inUTF16 is the text as Windows programs write it.
func inUTF16(text string, littleEndian bool) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if littleEndian {
			b.Write([]byte{byte(unit), byte(unit >> 8)})
		} else {
			b.Write([]byte{byte(unit >> 8), byte(unit)})
		}
	}
	return b.String()
}

// oneHierarchy has anonymize recode the column age of a file.
func oneHierarchy(t *testing.T, csv string) []string {
	t.Helper()
	return []string{
		"anonymize", "--csv", csv, "--k", "2", "--hierarchy", "age=" + file(t, "age.csv", "30;*\n31;*\n"),
		"--out", "-",
	}
}

func TestFilesThatAreNoCSVInUTF8AreToldByName(t *testing.T) {
	const plain = "name;age\nsecret;30\nsecret;30\n"
	for claim, c := range map[string]struct{ text, says string }{
		"UTF-16 of Windows":     {"\xff\xfe" + inUTF16(plain, true), "is in UTF-16"},
		"UTF-16, big end first": {"\xfe\xff" + inUTF16(plain, false), "is in UTF-16"},
		"UTF-16 without a mark": {inUTF16(plain, true), "UTF-16 without a mark"},
		"UTF-32":                {"\xff\xfe\x00\x00n\x00\x00\x00", "is in UTF-32"},
		"Windows-1252 in a column": {
			"name;age\nsecret;30\nsecret;3\xfc\n",
			"csv line 3: column 2 is not in UTF-8",
		},
		"Windows-1252 in the header": {
			"n\xe4me;age\nsecret;30\n",
			"csv line 1: column 1 is not in UTF-8",
		},
		"line ends of old Macintoshes": {strings.ReplaceAll(plain, "\n", "\r"), "ends in CR alone"},
		"one such end among others": {
			"name;age\nsecret;30\rsecret;30\n",
			"csv line 2: a line ends in CR alone",
		},
		"a NUL": {
			"name;age\nsecret;30\nsec\x00ret;30\n",
			"csv line 3: there is a NUL",
		},
		"gzip without its suffix": {"\x1f\x8b\x08\x00", "compressed by gzip"},
		"zstd without its suffix": {"\x28\xb5\x2f\xfd\x00", "compressed by zstd"},
		"a spreadsheet":           {"PK\x03\x04\x00", "a spreadsheet"},
		"Parquet":                 {"PAR1\x15\x04", "in Parquet format"},
		"a name that stands twice": {
			"age;secret;age\n30;1;30\n",
			"column 3 has the name of a column before it",
		},
		"a column without a name":     {"age;;b\n30;1;2\n", "column 2 has no name"},
		"no lines":                    {"", "the file is empty"},
		"a quote that nobody closes":  {"name;age\n\"secret;30\n", "csv line 2"},
		"a cell too many in one line": {"name;age\nsecret;30\nsecret;30;x\n", "csv line 3"},
		"a mark alone":                {"\xef\xbb\xbf", "the file is empty"},
	} {
		for _, args := range [][]string{
			oneHierarchy(t, file(t, "in.csv", c.text)),
			{"classify", "--csv", file(t, "in.csv", c.text)},
		} {
			code, out, fault := tailor(t, args...)
			if code != exitUsage || out != "" || strings.Count(fault, "\n") != 1 ||
				!strings.Contains(fault, c.says) {
				t.Errorf(
					"%s, %s: exit %d, %q, %q; want 2 and %q", args[0], claim, code, out, fault,
					c.says,
				)
			}
			if strings.Contains(fault, "secret;") {
				t.Errorf("%s: %q quotes a value", claim, fault)
			}
		}
	}
}

func TestMarksAndLineEndsThatMeanNothingAreRead(t *testing.T) {
	for claim, text := range map[string]string{
		"a byte order mark":       "\xef\xbb\xbfage;name\n30;a\n30;b\n",
		"line ends of Windows":    "age;name\r\n30;a\r\n30;b\r\n",
		"CR within quotes":        "age;name\n30;\"a\rb\"\n30;\"a\"\"\r\"\n",
		"no end of the last line": "age;name\n30;a\n30;b",
		"letters beyond ASCII":    "age;näme\n30;Zoë\n30;日本\n",
	} {
		if code, out, fault := tailor(t, oneHierarchy(t,
			file(t, "in.csv", text))...); code != exitSuccess ||
			out != "age\n30\n30\n" {
			t.Errorf("%s: exit %d, %q, %s", claim, code, out, fault)
		}
	}
}

// peakOf runs a command in a process of its own and tells what it took.
func peakOf(
	t *testing.T, stdin io.Reader, args ...string,
) (code int, fault string, bytesAtMost int64) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	var errs bytes.Buffer
	command.Stdin, command.Stderr = stdin, &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) &&
		!errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	usage := command.ProcessState.SysUsage().(*syscall.Rusage)
	return command.ProcessState.ExitCode(), errs.String(), usage.Maxrss * 1024
}

// endless repeats a text until size bytes are read.
type endless struct {
	start, repeated string
	size, read      int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read >= e.size {
		return 0, io.EOF
	}
	n := copy(p, e.start)
	e.start = e.start[n:]
	for n < len(p) {
		n += copy(p[n:], e.repeated)
	}
	e.read += int64(n)
	return n, nil
}

func TestALineOfAGigabyteEndsWithinTwiceTheLimitOfARecord(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs memory of its own")
	}
	repeated := strings.Repeat("secret", 1000)
	for claim, start := range map[string]string{
		"a line without an end":           "age;name\n30;",
		"a header without an end":         "age",
		"a quote that is never closed":    "age;name\n30;\"",
		"many columns, and no line's end": "age;name\n30;x\n30;y\n31;\"x\ny\";",
	} {
		for _, args := range [][]string{
			oneHierarchy(t, "/dev/stdin"),
			{"classify", "--csv", "/dev/stdin"},
		} {
			code, fault, peak := peakOf(
				t,
				&endless{start: start, repeated: repeated, size: 1 << 30},
				args...)
			if code != exitUsage || strings.Count(fault, "\n") != 1 ||
				!strings.Contains(fault, "longer than 64 MiB") ||
				strings.Contains(fault, "secret") {
				t.Errorf("%s, %s: exit %d, %.300q", args[0], claim, code, fault)
			}
			if t.Logf("%s, %s: %d MiB", args[0], claim, peak>>20); peak > 2*anonymize.MaxRecord {
				t.Errorf(
					"%s, %s: %d MiB for a limit of %d", args[0], claim, peak>>20,
					anonymize.MaxRecord>>20,
				)
			}
		}
	}
	lines := &endless{
		start:    "age;name\n30;\"",
		repeated: strings.Repeat("many\nlines\n", 1000),
		size:     1 << 30,
	}
	if code, fault, peak := peakOf(t, lines, oneHierarchy(t, "/dev/stdin")...); code != exitUsage ||
		peak > 2*anonymize.MaxRecord {
		t.Errorf("many lines in quotes: exit %d, %d MiB, %.300q", code, peak>>20, fault)
	}
}

func TestAHundredThousandColumnsAreReadOrTold(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs memory of its own")
	}
	const columns = 100_000
	var b strings.Builder
	b.WriteString("age")
	for c := range columns - 1 {
		fmt.Fprintf(&b, ";c%d", c)
	}
	for range 4 {
		b.WriteString("\n30" + strings.Repeat(";x", columns-1))
	}
	b.WriteString("\n")
	csv := file(t, "wide.csv", b.String())
	out := filepath.Join(t.TempDir(), "out.csv")
	args := append(oneHierarchy(t, csv)[:7], "--out", out)
	code, fault, peak := peakOf(t, nil, args...)
	if code != exitSuccess || len(fault) > 1000 || !strings.Contains(fault, "and 99979 more") ||
		peak > 2*anonymize.MaxRecord {
		t.Errorf("exit %d, %d MiB, %.1000s", code, peak>>20, fault)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "age\n30\n30\n30\n30\n" {
		t.Errorf("%.200q, %v", text, err)
	}
	args = []string{"assess", "--csv", csv, "--qid", "age,c7", "--sensitive", "c9"}
	if code, fault, peak = peakOf(t, nil, args...); code != exitSuccess ||
		peak > 2*anonymize.MaxRecord {
		t.Errorf("assess: exit %d, %d MiB, %.1000s", code, peak>>20, fault)
	}
	for _, args := range [][]string{{"classify", "--csv", csv}, {"verify", "--published", csv}} {
		code, fault, peak = peakOf(t, nil, args...)
		if code != exitUsage ||
			!strings.Contains(fault, "has 100000 columns, and a table has at most 1600") ||
			peak > 2*anonymize.MaxRecord {
			t.Errorf("%s: exit %d, %d MiB, %.1000s", args[0], code, peak>>20, fault)
		}
	}
	twice := file(t, "twice.csv", strings.Replace(b.String(), ";c99;", ";c98;", 1))
	code, fault, peak = peakOf(t, nil, append(oneHierarchy(t, twice)[:7], "--out", out)...)
	if code != exitUsage || !strings.Contains(fault, "column 101 has the name") ||
		peak > 2*anonymize.MaxRecord {
		t.Errorf("a name twice: exit %d, %d MiB, %.1000s", code, peak>>20, fault)
	}
}
