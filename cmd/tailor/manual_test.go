package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/extension"
)

func TestVersionIsThatOfTheSQLSide(t *testing.T) {
	code, out, _ := tailor(t, "version")
	if code != exitSuccess || !strings.HasPrefix(out, "tailor "+extension.Version+"\ncommit ") {
		t.Errorf("exit %d: %s", code, out)
	}
	if _, dashed, _ := tailor(t, "--version"); dashed != out {
		t.Errorf("--version: %s", dashed)
	}
}

func TestManualHasAPageForEachCommandWithItsFlags(t *testing.T) {
	dir := t.TempDir()
	if code, _, fault := tailor(t, "manual", "--out", dir); code != exitSuccess {
		t.Fatalf("exit %d: %s", code, fault)
	}
	for _, c := range commands {
		page, err := os.ReadFile(filepath.Join(dir, "tailor-"+c.name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		_, text, _ := tailor(t, c.name, "--help")
		for _, f := range helpFlag.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(string(page), `\-`+strings.ReplaceAll(f[1], "-", `\-`)) {
				t.Errorf("tailor-%s.1 has no --%s", c.name, f[1])
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tailor-policy-plan.1")); err != nil {
		t.Error(err)
	}
}

func TestBashCompletesCommandsVerbsFlagsAndFiles(t *testing.T) {
	_, script, _ := tailor(t, "completion")
	path := file(t, "completion", script)
	for line, want := range map[string]string{
		"se": "serve", "serve --audit-l": "--audit-log", "serve --listen 1:2 --pp": "--pprof",
		"policy pl": "plan", "policy plan --d": "--dsn", "disassociate --da": "--data",
		"serve --config pol": "", "nothing --d": "",
	} {
		words := strings.Fields(line)
		command := exec.Command("bash", "-c",
			`. "$0"; COMP_WORDS=(tailor "$@"); COMP_CWORD=$#; _tailor; echo "${COMPREPLY[*]}"`)
		command.Args = append(command.Args, append([]string{path}, words...)...)
		if output, err := command.Output(); err != nil || strings.TrimSpace(string(output)) != want {
			t.Errorf("%s: %q, %v, want %q", line, output, err, want)
		}
	}
}
