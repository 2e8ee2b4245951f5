// Package protocol is what PostgreSQL's wire protocol asks of the order of messages: the states
// of a session by what its client has sent, and which messages of the server answer which of the
// client's. It is pure tables, and safe for concurrent use.
package protocol

import "strings"

// State is what has to be known of what a client has sent in order to treat its next message as
// PostgreSQL does (PostgreSQL, chapter "Message Flow"). What a message does in a state, Transitions
// says; beside that, a refusal of one ends in Refused, and a message for which there is no
// connection to the server in Unserved.
type State uint8

// The states. Behind a simple query, in the states that end with Queried, the unnamed portal may
// be the query's.
const (
	Ready           State = iota // no message of a pipeline since the last Sync
	Queried                      // as Ready
	Pipeline                     // within a pipeline: the server may have failed since the last Sync
	PipelineQueried              // as Pipeline
	Refused                      // a message of the pipeline was refused
	RefusedQueried               // as Refused; the server passes over the query
	Unserved                     // there was no connection to the server for a message of a pipeline
	states
)

func (s State) String() string {
	return [states]string{
		"Ready", "Queried", "Pipeline", "PipelineQueried", "Refused", "RefusedQueried", "Unserved",
	}[s]
}

// InPipeline says that messages of a pipeline have been sent since the last Sync: nothing can be
// asked of the server without ending the pipeline.
func (s State) InPipeline() bool { return s >= Pipeline && s <= RefusedQueried }

// Act is what becomes of a message.
type Act uint8

// The acts.
const (
	Reject  Act = iota // the session ends with 08P01
	Forward            // it is handled, and goes to the server
	Drop               // the same, once the server has dropped the unnamed portal
	Skip               // nothing, as in a server that has failed
	Answer             // the proxy itself is ready, in place of the server
)

func (a Act) String() string {
	return [...]string{"reject", "forward", "drop", "skip", "answer"}[a]
}

// Transition is what a message does, and the state behind it.
type Transition struct {
	Act  Act
	Next State
}

// Row is what messages of some types do in each state.
type Row struct {
	Types string
	In    [states]Transition
}

// Transitions are those of all messages that a client can send in a session but Terminate, which
// ends it in any state. Messages of other types are rejected.
var Transitions = []Row{
	{"Q", [states]Transition{
		{Forward, Queried},
		{Forward, Queried},
		{Forward, PipelineQueried},
		{Forward, PipelineQueried},
		{Forward, RefusedQueried},
		{Forward, RefusedQueried},
		{Skip, Unserved},
	}},
	{"PBDE", [states]Transition{
		{Forward, Pipeline},
		{Drop, Pipeline},
		{Forward, Pipeline},
		{Drop, Pipeline},
		{Skip, Refused},
		{Skip, RefusedQueried},
		{Skip, Unserved},
	}},
	{"C", [states]Transition{ // which cannot fail, and so begins no pipeline
		{Forward, Ready},
		{Drop, Ready},
		{Forward, Pipeline},
		{Drop, Pipeline},
		{Skip, Refused},
		{Skip, RefusedQueried},
		{Skip, Unserved},
	}},
	{"S", [states]Transition{
		{Forward, Ready},
		{Forward, Queried},
		{Forward, Ready},
		{Forward, Queried},
		{Forward, Ready},
		{Forward, Queried},
		{Answer, Ready},
	}},
	{"H", [states]Transition{
		{Forward, Ready},
		{Forward, Queried},
		{Forward, Pipeline},
		{Forward, PipelineQueried},
		{Skip, Refused},
		{Skip, RefusedQueried},
		{Skip, Unserved},
	}},
	{"dcfF", [states]Transition{
		{Forward, Ready},
		{Forward, Queried},
		{Forward, Pipeline},
		{Forward, PipelineQueried},
		{Forward, Refused},
		{Forward, RefusedQueried},
		{Skip, Unserved},
	}},
}

// On is what a message of a type does in a state.
func (s State) On(kind byte) Transition {
	for i := range Transitions {
		if strings.IndexByte(Transitions[i].Types, kind) >= 0 {
			return Transitions[i].In[s]
		}
	}
	return Transition{Reject, s}
}
