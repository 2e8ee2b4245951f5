// Package sqlstate is the error that reaches a client: a PostgreSQL SQLSTATE
// with a message that holds no cell value and no literal of a query.
package sqlstate

import (
	"errors"
	"fmt"
)

// Code is a five-character SQLSTATE.
type Code string

// The codes that Tailor raises itself. PostgreSQL's own errors keep theirs.
const (
	FeatureNotSupported        Code = "0A000"
	ProtocolViolation          Code = "08P01"
	InvalidAuthorization       Code = "28000"
	InvalidPassword            Code = "28P01"
	SerializationFailure       Code = "40001"
	InsufficientPrivilege      Code = "42501"
	SyntaxError                Code = "42601"
	UndefinedColumn            Code = "42703"
	AmbiguousColumn            Code = "42702"
	InvalidColumnReference     Code = "42P10"
	UndefinedTable             Code = "42P01"
	UndefinedObject            Code = "42704"
	InvalidParameterValue      Code = "22023"
	DuplicatePreparedStatement Code = "42P05"
	CannotChangeParameter      Code = "55P02"
	TooManyConnections         Code = "53300"
	ProgramLimitExceeded       Code = "54000"
	TooManyColumns             Code = "54011"
	StatementTooComplex        Code = "54001"
	QueryCanceled              Code = "57014"
	AdminShutdown              Code = "57P01"
	CannotConnectNow           Code = "57P03"
	IdleSessionTimeout         Code = "57P05"
	InternalError              Code = "XX000"

	// RiskTooHigh: risk cannot be brought below the threshold.
	RiskTooHigh Code = "KA001"
	// PolicyStale: the table has changed shape since its policy was activated.
	PolicyStale Code = "KA004"
	// AuditUnavailable: the audit record could not be made durable.
	AuditUnavailable Code = "KA005"
)

// Error is an outcome that a client may see. Message is one line, lower case,
// without a full stop; Detail and Hint are sentences. Position counts
// characters of the client's statement from 1; 0 is unknown. Cause is for the
// log and never sent.
type Error struct {
	Code     Code
	Message  string
	Detail   string
	Hint     string
	Position int
	Cause    error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s (%s): %v", e.Message, e.Code, e.Cause)
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Code)
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the hint and returns the error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At sets the position, a byte offset into the statement counted from 0, and
// returns the error.
func (e *Error) At(statement string, offset int) *Error {
	if offset >= 0 && offset <= len(statement) {
		e.Position = len([]rune(statement[:offset])) + 1
	}
	return e
}

// Wrap keeps the cause for the log and returns the error.
func (e *Error) Wrap(cause error) *Error {
	e.Cause = cause
	return e
}

// From returns the *Error inside err, or an internal error that hides it.
func From(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return New(InternalError, "internal error").Wrap(err)
}
