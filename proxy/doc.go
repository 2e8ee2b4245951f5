// Package proxy carries PostgreSQL's wire protocol between clients and a
// server: start-up and authentication, then statements and their answers. It
// decides nothing about privacy; the planner, the catalog and the ecg do.
//
// A session has one connection to the client and one to the server, logged in
// as the client's own role. Two goroutines move its bytes:
//
//	client ─► statements ─► server   plan, assess, audit, then forward
//	client ◄─ answers ◄──── server   forward whole buffers, watch completions
//
// Once it has lasted for a moment, and as long as all that it does passes, a session
// takes turns with others on one goroutine instead, which runs the same code for both
// directions (see loop and loopRejoin).
//
// Where sessions share connections, one that is between transactions gives its
// own to another that waits, and gets one again for its next message (see pooled).
//
// What passes is written from the buffer that it was read into (see frames and
// sink). Between the two stands a queue of what the server still owes (see pendingReply):
// each message that will be answered is noted there before it is forwarded. The queue
// is bounded (see owed), as is what is known of names (see held).
// A refused statement is forwarded as one that cannot be parsed, so that the
// server's transaction fails as it would have, and the server's error is
// replaced by the reason.
//
// Messages from outside are cut into frames here and decoded by
// pgx/v5/pgproto3; messages made here are encoded by pgproto3/v2.
package proxy
