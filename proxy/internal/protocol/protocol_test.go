package protocol_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
)

// document holds the transitions and the answers as tables.
const document = "../../../docs/architecture.md"

var (
	inOrder = []protocol.State{
		protocol.Ready, protocol.Queried, protocol.Pipeline, protocol.PipelineQueried,
		protocol.Refused, protocol.RefusedQueried, protocol.Unserved,
	}
	frontend = map[byte]string{
		'Q': "Query", 'P': "Parse", 'B': "Bind", 'D': "Describe", 'E': "Execute", 'C': "Close",
		'S': "Sync", 'H': "Flush", 'd': "CopyData", 'c': "CopyDone", 'f': "CopyFail", 'F': "FunctionCall",
	}
)

// TestTheDocumentHasTheTransitions: what docs/architecture.md says of states and messages is what
// the tables are.
func TestTheDocumentHasTheTransitions(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range protocol.Transitions {
		for _, kind := range []byte(row.Types) {
			cells := []string{frontend[kind]}
			for _, state := range inOrder {
				in := row.In[state]
				switch {
				case in.Next == state:
					cells = append(cells, in.Act.String())
				case in.Act == protocol.Forward:
					cells = append(cells, "→ "+in.Next.String())
				default:
					cells = append(cells, in.Act.String()+" → "+in.Next.String())
				}
			}
			lines = append(lines, "| "+strings.Join(cells, " | ")+" |\n")
		}
	}
	for _, kind := range []byte("QFPBCDES") {
		reply := protocol.Replies[kind]
		ends := reply.Ends
		if ends == "" {
			ends = "Z"
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", frontend[kind], reply.Parts, ends))
	}
	for _, line := range lines {
		if !strings.Contains(string(text), line) {
			t.Errorf("%s has no line\n%s", document, line)
		}
	}
}

// TestEveryMessageHasATransition: each type that a client can send has one row, and no other has.
func TestEveryMessageHasATransition(t *testing.T) {
	rows := make(map[byte]int)
	for _, row := range protocol.Transitions {
		for _, kind := range []byte(row.Types) {
			rows[kind]++
		}
	}
	for i := range 256 {
		kind, want := byte(i), 0
		if frontend[kind] != "" {
			want = 1
		}
		if rows[kind] != want {
			t.Errorf("%d rows for messages of type %q, want %d", rows[kind], kind, want)
		}
		for _, state := range inOrder {
			if rejected := state.On(kind).Act == protocol.Reject; rejected != (want == 0) {
				t.Errorf("a message of type %q in %s: rejected %v", kind, state, rejected)
			}
		}
	}
}

// TestPipelinesEndWithSync: whatever has been sent, behind Sync the session is not in a pipeline,
// and nothing else brings it out of one.
func TestPipelinesEndWithSync(t *testing.T) {
	for _, state := range inOrder {
		for kind := range frontend {
			next := state.On(kind).Next
			if kind == 'S' && (next.InPipeline() || next == protocol.Unserved) {
				t.Errorf("Sync leaves a session %s", next)
			}
			ends := state.InPipeline() && !next.InPipeline() || state == protocol.Unserved && next != state
			if kind != 'S' && ends {
				t.Errorf("%s ends %s", frontend[kind], state)
			}
		}
	}
}
