package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// AdmissionToken appends to a statement over releases what tailor.admit asks for: proof
// that the proxy planned and recorded this text, for the session at the server
// that tailor.session names so, and
// these editions of releases. Attacker: a reader who sends any SQL, also in
// strings, under other names of statements and cursors, or past the proxy. Then no
// release answers a statement that was not recorded under its own text; whoever
// repeats a text with its ticket in the same session repeats a recorded one. And no
// statement that was planned on one policy is answered under another.
// TestRefusals, TestNoWayPastTheRecord and TestWhatOvertakesAPlanIsSaidOrAnswered
// check it.
func (c *Catalog) AdmissionToken(statement string, session string, releases []*Release) string {
	var chains []string
	for _, r := range releases {
		chains = append(chains, fmt.Sprintf("%d:%d", r.Chain, r.Edition))
		if r.WithParent {
			chains = append(chains, fmt.Sprintf("%d:%d", parentAdmission(r.Chain), r.Edition))
		}
	}
	list := strings.Join(chains, ",")
	inner := sha256.New()
	inner.Write(c.key)
	fmt.Fprintf(inner, "%s %s\n%s", session, list, statement)
	outer := sha256.Sum256(append(append([]byte{}, c.key...), inner.Sum(nil)...))
	return fmt.Sprintf("%s\n/* tailor %s %s */", statement, list, hex.EncodeToString(outer[:]))
}

// parentAdmission is the number by which a ticket admits what a chain's release
// shows of the parent: only a statement that was planned as a join has it.
func parentAdmission(chain int) int { return -chain }

var ticketForm = regexp.MustCompile(`/\* tailor [-0-9,:]* ?[0-9a-f]{64} \*/`)

// HasTicket says whether a text holds a ticket, or what could be taken for one.
func HasTicket(text string) bool { return ticketForm.MatchString(text) }
