package proxy

import (
	"context"
	"strconv"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/metrics"
	"github.com/hiatus-tailor/tailor/planner"
)

// proxyMetrics are what the proxy counts and measures.
type proxyMetrics struct {
	registry            metrics.Registry
	connections         *metrics.Counter
	logins              map[string]*metrics.Counter
	statements          map[string]*metrics.Counter
	latency             map[string]*metrics.Durations
	planning            *metrics.Durations
	assessment          *metrics.Durations
	toClients, toServer *metrics.Counter
	loss                *metrics.Gauges
	standbys            map[string]*metrics.Counter
}

var verdicts = []string{
	string(audit.Passed), string(audit.Released), string(audit.Refused),
	string(audit.Failed),
}

func newProxyMetrics(p *Proxy) *proxyMetrics {
	m := &proxyMetrics{}
	r := &m.registry
	m.connections = r.Counter("tailor_connections_total",
		"Connections accepted, cancel requests included.")
	m.logins = r.Counters("tailor_logins_total", "Logins by outcome.", "outcome", "accepted",
		"refused")
	r.Gauge("tailor_ready", "1 if new clients would be served, as /readyz says, else 0.",
		func() float64 { return oneIf(p.Ready()) })
	r.Gauge("tailor_audit_available", "1 if the last audit records could be written, else 0.",
		func() float64 { return oneIf(p.audit.Available()) })
	r.Gauge("tailor_max_clients", "Sessions that may be open at once.",
		func() float64 { return float64(p.running.Load().MaxClients) })
	r.Gauge("tailor_sessions", "Sessions that are open.", func() float64 {
		return float64(p.registry.count())
	})
	r.Gauge("tailor_queued_clients", "Clients that wait for a session or a connection to PostgreSQL.",
		func() float64 {
			return float64(p.clientLimiter.Queued() + p.upstreamLimiter.Queued())
		})
	r.Gauge("tailor_upstream_connections", "Connections to PostgreSQL that clients have.",
		func() float64 {
			return float64(p.upstreamLimiter.Occupied())
		})
	m.standbys = r.Counters("tailor_standby_connections_total",
		"Connections for readers at hot standbys, by outcome.", "outcome", served, passedOver)
	m.statements = r.Counters("tailor_statements_total", "Statements by verdict.", "verdict",
		verdicts...)
	m.latency = r.Durations("tailor_statement_seconds",
		"Time from a statement to the end of its answer, by verdict.", "verdict", verdicts...)
	m.planning = r.Duration("tailor_planning_seconds",
		"Time to plan a statement that may concern a protected table.")
	m.assessment = r.Duration("tailor_assessment_seconds",
		"Time to assess and record a protected statement.")
	bytes := r.Counters("tailor_relayed_bytes_total", "Bytes passed on, by receiver.", "to", "client",
		"server")
	m.toClients, m.toServer = bytes["client"], bytes["server"]
	m.loss = r.Gauges("tailor_chain_loss", "Information loss of the last answer of a chain, 0 to 1.",
		"chain")
	return m
}

// Outcomes of tailor_standby_connections_total.
const served, passedOver = "served", "passed_over"

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// ended counts a statement.
func (m *proxyMetrics) ended(verdict audit.Verdict, duration time.Duration) {
	m.statements[string(verdict)].Add(1)
	m.latency[string(verdict)].Observe(duration)
}

// released notes what an answer cost in detail.
func (m *proxyMetrics) released(r *audit.Record) {
	m.loss.Set(strconv.Itoa(r.Chain), r.AggregateLoss)
}

// Metrics are the figures of this proxy.
func (p *Proxy) Metrics() *metrics.Registry { return &p.metrics.registry }

// Ready says whether new clients would be served: the policies are known, and
// the proxy is not on its way out.
func (p *Proxy) Ready() bool {
	_, err := p.catalog.Snapshot()
	return err == nil && !p.draining.Load()
}

// measuredDecision is decide with its time and outcome noted.
func (s *session) measuredDecision(
	ctx context.Context, plan *planner.Plan, record *audit.Record, meanwhile func(*decision),
) (*decision, error) {
	started := s.proxy.clock()
	d, err := s.decide(ctx, plan, record, meanwhile)
	s.proxy.metrics.assessment.Observe(s.proxy.clock().Sub(started))
	if err == nil {
		s.proxy.metrics.released(record)
	}
	return d, err
}
