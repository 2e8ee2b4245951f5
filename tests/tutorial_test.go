package tests

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

var updateTutorial = flag.Bool("update-tutorial", false,
	"write the transcripts of tutorials, and README.md's copy of its own, anew")

// people is the CSV file of the tutorial.
func people() string {
	var b strings.Builder
	b.WriteString("id,name,born,zip,sex,diagnosis,cost\n")
	for n := 1; n <= 400; n++ {
		fmt.Fprintf(&b, "%d,Person %d,%d-%02d-%02d,%05d,%s,%s,%d\n", n, n, 1940+n*7%60, 1+n%12, 1+n%28,
			10115+n%5*1013, []string{"f", "m"}[n%2], []string{
				"asthma", "diabetes", "flu", "migraine",
				"anemia",
			}[n*3%7%5], 100+n*37%900)
	}
	return b.String()
}

// TestTheTutorialIsAsWritten plays testdata/tutorial.txt. README.md's tutorial is this
// transcript.
func TestTheTutorialIsAsWritten(t *testing.T) {
	const transcript = "testdata/tutorial.txt"
	s, dir := guided(t, "tutorial", "clinic"), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte(people()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := s.play(t, transcript, "clinic", dir)
	if *updateTutorial {
		readme, start, end := readmeTutorial(t)
		if err := os.WriteFile("../README.md", []byte(readme[:start]+text+readme[end:]),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrangersTablesAreProtectedByTheTutorial plays what somebody who has the tutorial and
// the reference of policies did with tables of others: a school's marks, a census and a
// survey of the labour force, each from its file to answers for a reader.
func TestStrangersTablesAreProtectedByTheTutorial(t *testing.T) {
	s := guided(t, "strangers", "school", "census", "survey")
	tables := []struct{ database, file string }{
		{"school", "pycanon/StudentsMath_Score.csv"},
		{"census", "arx/ss13acs/ss13acs.csv"},
		{"survey", "muargus/Demofree.asc"},
	}
	for i, table := range tables {
		t.Run(table.database, func(t *testing.T) {
			oneIn(t, len(tables), i)
			from := refdata.Path(t, table.file)
			dir := t.TempDir()
			if err := os.Symlink(from, filepath.Join(dir, filepath.Base(from))); err != nil {
				t.Fatal(err)
			}
			s.play(t, filepath.Join("testdata", "strangers", table.database+".txt"), table.database, dir)
		})
	}
}

// guided is a PostgreSQL of its own with empty databases.
func guided(t *testing.T, name string, databases ...string) *testCluster {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &testCluster{dir: filepath.Join(stands, name)}
	if s.cluster, err = pgcluster.Start(t.Context(), s.dir, port, "fsync=off"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	admin := connect(t, s.cluster.SuperuserDSN("postgres"))
	for _, database := range databases {
		mustExec(t, admin, "CREATE DATABASE "+database)
	}
	return s
}

// play runs the commands of a transcript, which follow "$ ", one after the other in a folder,
// and compares what they print. Where the proxy listens is written as 127.0.0.1:6432. With
// -update-tutorial it writes the transcript anew.
func (s *testCluster) play(t *testing.T, transcript, database, dir string) string {
	t.Helper()
	raw, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	environment := append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"),
		"PGHOST="+s.dir,
		fmt.Sprintf("PGPORT=%d", s.cluster.Port), "PGUSER=postgres", "PGDATABASE="+database,
		"PGSSLMODE=disable",
		fmt.Sprintf("TAILOR_DSN=host=%s port=%d user=postgres dbname=%s", s.dir, s.cluster.Port,
			database))
	proxy := ""
	var got strings.Builder
	for _, line := range strings.Split(string(raw), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		if !is {
			if strings.HasPrefix(line, "# ") {
				got.WriteString(line + "\n")
			}
			continue
		}
		got.WriteString(line + "\n")
		if strings.HasPrefix(command, "tailor serve ") {
			proxy = s.serve(t, "--service-dsn", s.cluster.ServiceDSN(database)).address
			got.WriteString("listening on 127.0.0.1:6432\n")
			continue
		}
		host, port, _ := net.SplitHostPort(proxy)
		cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(command,
			"-h 127.0.0.1 -p 6432", "-h "+host+" -p "+port))
		cmd.Dir, cmd.Env = dir, environment
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // what it says is in the transcript
		got.Write(out.Bytes())
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the commands took %v: nine minutes are for who reads and types", took)
	}
	text := strings.NewReplacer(dir, "$DIR", s.dir, "$HOST", proxy, "127.0.0.1:6432").
		Replace(got.String())
	text = regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
	if *updateTutorial {
		if err := os.WriteFile(transcript, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(raw) {
		t.Errorf("%s prints\n%s\nwritten is\n%s", transcript, text, raw)
	}
	return text
}

// readmeTutorial is README.md, and where in it the block of the tutorial starts
// and ends.
func readmeTutorial(t *testing.T) (readme string, start, end int) {
	t.Helper()
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme = string(raw)
	const heading, fence = "\n## From a CSV file to a protected table\n", "```\n"
	at := strings.Index(readme, heading)
	if at < 0 {
		t.Fatal("README.md has no tutorial")
	}
	start = at + strings.Index(readme[at:], fence) + len(fence)
	length := strings.Index(readme[start:], fence)
	if start < at+len(fence) || length < 0 {
		t.Fatal("README.md's tutorial has no block")
	}
	return readme, start, start + length
}

func TestTheTutorialOfTheReadmeIsTheTranscript(t *testing.T) {
	transcript, err := os.ReadFile("testdata/tutorial.txt")
	if err != nil {
		t.Fatal(err)
	}
	readme, start, end := readmeTutorial(t)
	if readme[start:end] != string(transcript) {
		t.Error("README.md's tutorial is not testdata/tutorial.txt: run this package's tests with -run " +
			"Tutorial -update-tutorial")
	}
}
