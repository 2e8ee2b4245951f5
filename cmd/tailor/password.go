package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"
)

func runPassword(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	flags := newFlags("password",
		"set the password of a role where the server's verifiers cannot be read", stderr)
	describe(flags, `
usage: tailor password --dsn DSN ROLE < FILE

The password is the first line of standard input. The server and the proxies of the database get
its verifier (tailor.let_in). It is needed where nobody is superuser; elsewhere ALTER ROLE does.
`)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""),
		"`connection` string of the role that has installed Tailor")
	flagged, roles := splitArguments(args)
	if code, ok := parseFlags(flags, flagged, stdout, stderr); !ok {
		return code
	}
	switch {
	case len(roles) != 1:
		return complainUsage(flags, stderr, fmt.Sprintf("one ROLE is wanted, not %d", len(roles)))
	case *dsn == "":
		return complainUsage(flags, stderr, "--dsn is missing")
	}
	if err := setPassword(ctx, *dsn, roles[0], stdin); err != nil {
		return complain("password", stderr, err)
	}
	fmt.Fprintf(stdout, "role %s can log in with it, directly and through proxies\n", roles[0])
	return exitSuccess
}

// passwordLimit is how long a password may be, in bytes, less than PostgreSQL and libpq take.
const passwordLimit = 1000

// setPassword reads a password and gives server and proxies its verifier.
func setPassword(ctx context.Context, dsn, role string, stdin io.Reader) error {
	line, err := bufio.NewReader(io.LimitReader(stdin, passwordLimit+2)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	password := strings.TrimRight(line, "\r\n")
	switch {
	case password == "":
		return errors.New("there is no password on standard input; write it in one line")
	case len(password) > passwordLimit:
		return fmt.Errorf("the password has more than %d bytes", passwordLimit)
	}
	text, err := scramVerifier(password)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	_, err = conn.Exec(ctx, `CALL tailor.let_in($1, $2)`, role, text)
	return err
}

// scramIterations are PostgreSQL's own.
const scramIterations = 4096

// scramVerifier is what PostgreSQL stores of a password (RFC 5803), under a salt of its own.
// A password that is no text is taken as it is, as PostgreSQL and libpq do. These prepare one
// by RFC 4013, other drivers by RFC 8265: where that is not the same, one of them would be
// refused the login.
func scramVerifier(password string) (string, error) {
	prepared, err := precis.OpaqueString.String(password)
	ascii := !strings.ContainsFunc(password, func(r rune) bool { return r >= utf8.RuneSelf })
	if !ascii && utf8.ValidString(password) && (err != nil || norm.NFKC.String(prepared) != prepared) {
		return "", errors.New("the password has characters that programs take for different ones; " +
			"leave out ligatures, full-width and invisible ones")
	}
	if err == nil {
		password = prepared
	}
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	key := func(of string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(of))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(key("Client Key"))
	encoded := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encoded(salt),
		encoded(stored[:]), encoded(key("Server Key"))), nil
}
