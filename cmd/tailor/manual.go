package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hiatus-tailor/tailor/extension"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

// helpPage is what `tailor NAME --help` prints. The name of the whole is empty.
type helpPage struct {
	name, summary, text string
}

// helpPages are those of tailor, its commands and their verbs.
func helpPages(ctx context.Context) []helpPage {
	pages := []helpPage{
		{"", "a proxy that de-identifies PostgreSQL's answers, and its tools", help(ctx)},
	}
	for _, c := range allCommands() {
		pages = append(pages, helpPage{c.name, c.summary, help(ctx, c.name)})
		for _, v := range verbs(c.name) {
			pages = append(pages, helpPage{c.name + " " + v, c.summary, help(ctx, c.name, v)})
		}
	}
	return pages
}

// verbs are those of a command, whose flags each verb's own help lists.
func verbs(command string) []string {
	var names []string
	switch command {
	case "hierarchy":
		names = []string{"import", "list"}
	case "policy":
		for _, v := range policyVerbs {
			names = append(names, v.name)
		}
	}
	return names
}

func help(ctx context.Context, words ...string) string {
	var text strings.Builder
	dispatch(ctx, append(words, "--help"), strings.NewReader(""), &text, &text)
	return text.String()
}

// helpFlag begins the help on a flag.
var helpFlag = regexp.MustCompile(`(?m)^  --?([a-z][a-z-]*)`)

func runManual(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("manual", "write the manual pages, one for each command", stderr)
	dir := flags.String("out", "", "`DIR` to write them to")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *dir == "" {
		return complainUsage(flags, stderr, "--out is missing")
	}
	for _, p := range helpPages(ctx) {
		write := func(w io.Writer) error { _, err := io.WriteString(w, p.roff()); return err }
		if err := atomicfile.Write(filepath.Join(*dir, p.file()), 0o644, write); err != nil {
			return complain("manual", stderr, err)
		}
	}
	return exitSuccess
}

func (p helpPage) title() string {
	return strings.ReplaceAll(strings.TrimSpace("tailor "+p.name), " ", "-")
}

func (p helpPage) file() string { return p.title() + ".1" }

// roff is the page as man reads it: the text of the help, set as it is but for
// flags, which stand in bold.
func (p helpPage) roff() string {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s 1 \"\" \"tailor %s\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n",
		strings.ToUpper(p.title()), extension.Version, p.title(), escapeRoff(p.summary))
	for line := range strings.Lines(p.text) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
		if helpFlag.MatchString(line) {
			out.WriteString(".B ")
		}
		out.WriteString(escapeRoff(line) + "\n")
	}
	out.WriteString(".fi\n")
	if p.name == "" {
		out.WriteString(".SH SEE ALSO\n.BR tailor-serve (1),\n" +
			"and tailor-COMMAND(1) for each other command.\n")
	} else {
		out.WriteString(".SH SEE ALSO\n.BR tailor (1)\n")
	}
	return out.String()
}

// escapeRoff has a line mean itself.
func escapeRoff(line string) string {
	line = strings.NewReplacer(
		`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
