package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

func runCompletion(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("completion",
		"print a script by which bash completes commands and flags", stderr)
	describe(flags, "\nusage: source <(tailor completion)\n")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	var names, cases strings.Builder
	for _, c := range allCommands() {
		names.WriteString(" " + c.name)
		if v := verbs(c.name); len(v) > 0 {
			fmt.Fprintf(&cases, "    '%s') words='%s' ;;\n", c.name, strings.Join(v, " "))
		}
	}
	for _, p := range helpPages(ctx) {
		var words []string
		for _, f := range helpFlag.FindAllStringSubmatch(p.text, -1) {
			words = append(words, "--"+f[1])
		}
		if p.name != "" && len(words) > 0 {
			fmt.Fprintf(&cases, "    '%s'*) words='%s' ;;\n", p.name, strings.Join(words, " "))
		}
	}
	fmt.Fprintf(stdout, `# bash completion of tailor; where there is no word, files are completed
_tailor() {
    local words=''
    case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in
    '') words='%s' ;;
%s    esac
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tailor tailor
`, strings.TrimSpace(names.String()), cases.String())
	return exitSuccess
}
