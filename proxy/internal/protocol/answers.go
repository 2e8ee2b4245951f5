package protocol

import "strings"

// Reply is what the server answers to a message of a type, short of what ends the answers to all
// types, an error and ReadyForQuery, and of what may come at any time.
type Reply struct {
	Parts string // types of messages that are part of the answer, and do not end it
	Ends  string // types of messages that end it; empty where ReadyForQuery does
}

// Replies are those to the types of messages that the server answers (PostgreSQL, chapter "Message
// Flow").
var Replies = map[byte]Reply{
	'Q': {Parts: "TDCIGHdc"},
	'F': {Parts: "V"},
	'P': {Ends: "1"},
	'B': {Ends: "2"},
	'C': {Ends: "3"},
	'D': {Parts: "t", Ends: "Tn"},
	'E': {Parts: "DGHdc", Ends: "CIs"},
	'S': {},
}

// replies are Replies by type: rows are looked up one by one.
var replies = func() (all [128]Reply) {
	for kind, reply := range Replies {
		all[kind] = reply
	}
	return all
}()

// Fits says whether a message of the server belongs to the answer to a message of a type.
func Fits(kind, answer byte) bool {
	r := &replies[kind&127]
	return strings.IndexByte(r.Parts, answer) >= 0 || strings.IndexByte(r.Ends, answer) >= 0
}

// Ends says whether a message of the server ends the answer to a message of a type.
func Ends(kind, answer byte) bool {
	return strings.IndexByte(replies[kind&127].Ends, answer) >= 0
}
