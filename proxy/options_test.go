package proxy

import "testing"

func TestOptionsOfALoginAreReadAsTheServerDoes(t *testing.T) {
	for options, right := range map[string]bool{
		"":                                         true,
		"-c tailor.representation=value":           true,
		"-ctailor.representation=VALUE":            true,
		"-c work_mem=5MB --tailor.notices=0":       true,
		"-c tailor.project=any\\ name":             true,
		"-c":                                       true,
		"-c tailor.representation=values":          false,
		"-ctailor.representation=values":           false,
		"\t--tailor.representation=val\\ ue":       false,
		"-c work_mem=5MB  -c TAILOR.notices=maybe": false,
		"-c tailor.full-domain=1":                  false,
		"-c \\tailor.notices=maybe":                false,
	} {
		if err := assertParameters(map[string]string{"options": options}); (err == nil) != right {
			t.Errorf("%q: %v", options, err)
		}
	}
}
