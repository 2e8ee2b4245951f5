package main

import (
	"fmt"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// checkRecoding says whether `tailor anonymize` can recode in that way. It is
// the one place that knows; the error is one of usage.
func checkRecoding(recoding string) error {
	switch recoding {
	case "full_domain":
		return nil
	case "local", "cell":
		return &anonymize.ProblemError{
			What:   fmt.Sprintf("recoding %q is not available in this build", recoding),
			Remedy: "use full_domain",
		}
	}
	return &anonymize.ProblemError{
		What:   fmt.Sprintf("unknown recoding %q", recoding),
		Remedy: "use full_domain, local or cell",
	}
}
