package proxy

import (
	"bytes"
	"context"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/proxy/internal/limiter"
)

// silence takes records and keeps none.
type silence struct{}

func (silence) Append(context.Context, *audit.Record) error { return nil }
func (silence) Finish(*audit.Record, audit.Outcome)         {}
func (silence) Available() bool                             { return true }
func (silence) SealPending()                                {}
func (silence) RefusedLogin(*audit.Record)                  {}

// someone is a client without a connection.
type someone struct{ net.Conn }

func (someone) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// bareSession is a session of an administrator that reads from the sources.
// What it forwards is kept.
func bareSession(client, server io.Reader) (s *session, toServer, toClient *bytes.Buffer) {
	p := &Proxy{
		audit: silence{}, log: slog.New(slog.DiscardHandler), clock: time.Now,
		seed: maphash.MakeSeed(),
	}
	p.running.Store(&running{Config: DefaultConfig()})
	p.clientLimiter = limiter.New(1, 0)
	p.metrics = newProxyMetrics(p)
	toServer, toClient = &bytes.Buffer{}, &bytes.Buffer{}
	s = &session{
		proxy: p, client: someone{}, principal: &catalog.Principal{Name: "dba"},
		server: &upstream{frames: newFrames(server)}, in: newFrames(client),
		out:   &sink{to: toClient, meter: p.metrics.toClients},
		up:    &sink{to: toServer, meter: p.metrics.toServer},
		stats: &statementStats{seed: p.seed},
		names: names{statements: make(map[string]*prepared), portals: make(map[string]*portal)},
	}
	s.in.ofClient()
	s.server.frames.ofServer()
	s.expect.dropped = func(e *pendingReply) { s.finish(e, audit.Failed, "") }
	return s, toServer, toClient
}
