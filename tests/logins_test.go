package tests

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
)

func TestWhoDoesNotLogInTakesNoSeat(t *testing.T) {
	p := shared.serve(t, "--max-clients", "2", "--queue-timeout", "1s", "--startup-timeout", "30s")
	user := shared.reader(t)
	begun, err := (&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": user, "database": "hospital"}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write(begun); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err != nil { // it is asked for its proof
			t.Fatalf("a login is not begun: %v", err)
		}
	}
	for range 2 {
		if n := one[int](t, connect(t, p.dsn(user)), `SELECT count(*) FROM patients`); n != patients {
			t.Errorf("%d patients", n)
		}
	}
}
