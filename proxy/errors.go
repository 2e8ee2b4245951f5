package proxy

import (
	"slices"
	"strings"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// errorFrame encodes an outcome for the client. severity is ERROR, or FATAL
// where the connection ends.
func errorFrame(severity string, e *sqlstate.Error) []byte {
	m := &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: string(e.Code), Message: e.Message,
		Detail: e.Detail, Hint: e.Hint, Position: int32(e.Position),
	}
	frame, err := encode(m)
	if err != nil { // only the texts can be too long
		m.Message, m.Detail, m.Hint = "the reason is too long to be shown", "", ""
		frame, _ = encode(m)
	}
	return frame
}

// noticeFrame encodes a NOTICE.
func noticeFrame(message, detail, hint string) []byte {
	frame, err := encode(&pgproto3.NoticeResponse{
		Severity: "NOTICE", SeverityUnlocalized: "NOTICE", Code: "00000", Message: message,
		Detail: detail, Hint: hint,
	})
	if err != nil {
		return nil
	}
	return frame
}

// repositioned is PostgreSQL's error about a rewritten statement, with its
// position moved to the client's own text.
func repositioned(frame []byte, position func(int) int) []byte {
	var e decode.ErrorResponse
	if err := e.Decode(frame[headerBytes:]); err != nil || e.Position == 0 {
		return frame
	}
	e.Position = int32(position(int(e.Position)))
	moved, err := e.Encode(nil)
	if err != nil {
		return frame
	}
	return moved
}

// withoutData is PostgreSQL's error about a statement over released data, freed
// of texts that may quote a value: those of the classes for data, constraints
// and errors that functions raise. The code and the position stay.
func withoutData(frame []byte) []byte {
	var e decode.ErrorResponse
	if err := e.Decode(frame[headerBytes:]); err != nil {
		return errorFrame("ERROR", sqlstate.New(sqlstate.InternalError, "internal error"))
	}
	if !mayQuote(&e) {
		return frame
	}
	severity := "ERROR"
	if fatal(frame) {
		severity = "FATAL"
	}
	out := &sqlstate.Error{
		Code: sqlstate.Code(e.Code), Message: "the statement cannot be computed on this data",
		Position: int(e.Position),
		Hint:     "The server's own message is withheld: it may quote a value of a protected column.",
	}
	if words, _, quotes := strings.Cut(e.Message, `: "`); slices.Contains(constantMessages, words) {
		out.Message, out.Hint = words, ""
		if quotes {
			out.Hint = "What it is about is withheld: it may be a value of a protected column."
		}
	}
	return errorFrame(severity, out)
}

// constantMessages are those of PostgreSQL's errors about data that hold nothing
// but their words, up to where some quote a value.
var constantMessages = []string{
	"division by zero", "integer out of range", "smallint out of range", "bigint out of range",
	"numeric field overflow",
	"value out of range: overflow", "value out of range: underflow", "interval out of range",
	"timestamp out of range", "date out of range",
	"cannot take logarithm of zero", "cannot take logarithm of a negative number",
	"cannot take square root of a negative number",
	"invalid input syntax for type integer", "invalid input syntax for type smallint",
	"invalid input syntax for type bigint",
	"invalid input syntax for type numeric", "invalid input syntax for type real",
	"invalid input syntax for type double precision",
	"invalid input syntax for type date", "invalid input syntax for type timestamp",
	"invalid input syntax for type timestamp with time zone",
	"invalid input syntax for type time", "invalid input syntax for type interval",
	"invalid input syntax for type boolean",
	"invalid input syntax for type uuid", "date/time field value out of range",
	"negative substring length not allowed", "LIMIT must not be negative",
	"OFFSET must not be negative",
}

// mayQuote says whether an error may hold a value that the statement has read:
// by its class, or because it is about a name that does not stand in the text
// itself, such as that of a table in diagnosis::regclass.
func mayQuote(e *decode.ErrorResponse) bool {
	if len(e.Code) != 5 {
		return false
	}
	switch class := e.Code[:2]; class {
	case "42":
		return (e.Position == 0 || e.Where != "") && e.Code != string(sqlstate.InsufficientPrivilege) &&
			e.Code != indeterminateDatatype
	default:
		return slices.Contains([]string{"22", "23", "3D", "3F", "P0", "XX", "38", "39"}, class)
	}
}

// indeterminateDatatype is about a parameter, and has no position.
const indeterminateDatatype = "42P18"

// fatal says whether the server ends the session with an ErrorResponse.
func fatal(frame []byte) bool {
	var e decode.ErrorResponse
	if err := e.Decode(frame[headerBytes:]); err != nil {
		return false
	}
	return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC"
}

// codeOf is the SQLSTATE of an ErrorResponse.
func codeOf(frame []byte) string {
	var e decode.ErrorResponse
	if err := e.Decode(frame[headerBytes:]); err != nil {
		return ""
	}
	return e.Code
}
