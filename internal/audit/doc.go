// Package audit keeps one record of every statement that came through the
// proxy, and of every login that was refused.
//
// A record travels from [Log.Append] or [Log.Finish] through a queue to the
// sinks: a file of JSON lines, a table in the database, or both. One at a time
// writes, for all: what gathered meanwhile goes out together (group commit).
// Append returns once the record is durable; a record of a protected
// query is appended before its first row leaves. How the answer ended follows
// in a second line, the completion, which names the first and adds rows,
// duration and, where it failed, the SQLSTATE.
//
// Each log is one chain: records are numbered without gaps, and each holds the
// SHA-256 of the one before. Two proxies are two chains. [Verify] finds altered
// and removed records; a cut tail is found by the head of the chain that the
// database keeps, by the other sink, or by a hash that somebody wrote down.
package audit
