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

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

var updateTutorial = flag.Bool("update-tutorial", false,
	"write the transcript of the tutorial, and README.md's copy of it, anew")

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

// TestTheTutorialIsAsWritten runs the commands of testdata/tutorial.txt, which
// follow "$ ", one after the other, and compares what they print. Where the
// proxy listens is written as 127.0.0.1:6432. README.md's tutorial is this
// transcript.
func TestTheTutorialIsAsWritten(t *testing.T) {
	const transcript = "testdata/tutorial.txt"
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &testCluster{dir: filepath.Join(stands, "tutorial")}
	if s.cluster, err = pgcluster.Start(t.Context(), s.dir, port, "fsync=off"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte(people()), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := connect(t, s.cluster.SuperuserDSN("postgres"))
	mustExec(t, admin, `CREATE DATABASE clinic`)
	raw, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"),
		"PGHOST="+s.dir,
		fmt.Sprintf("PGPORT=%d", s.cluster.Port), "PGUSER=postgres", "PGDATABASE=clinic",
		"PGSSLMODE=disable",
		fmt.Sprintf("TAILOR_DSN=host=%s port=%d user=postgres dbname=clinic", s.dir, s.cluster.Port))
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
			proxy = s.serve(t, "--service-dsn", s.cluster.ServiceDSN("clinic")).address
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
	text := strings.NewReplacer(dir, "$DIR", s.dir, "$HOST", proxy, "127.0.0.1:6432").
		Replace(got.String())
	text = regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
	if *updateTutorial {
		if err := os.WriteFile(transcript, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		readme, start, end := readmeTutorial(t)
		if err := os.WriteFile("../README.md", []byte(readme[:start]+text+readme[end:]),
			0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != string(raw) {
		t.Errorf("the tutorial prints\n%s\nwritten is\n%s", text, raw)
	}
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
