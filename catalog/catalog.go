package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Catalog is the privileged side: it reads policies and writes chains and
// releases as tailor_owner. It is safe for concurrent use.
type Catalog struct {
	// Patience is how long a statement waits for a release that is being made. It is set
	// before the first is asked for.
	Patience time.Duration
	// PartRows is how many rows of a table are partitioned at once, [MinPartRows] or more. It
	// is set before the first release is made.
	PartRows int

	life     context.Context // ends with Close
	end      context.CancelFunc
	pool     *pgxpool.Pool
	log      *slog.Logger
	makers   chan struct{}            // holds one for each release that is being made
	warmers  chan struct{}            // holds one for each relation that is being prepared
	snapshot atomic.Pointer[Snapshot] // nil while unavailable
	known    known
	position atomic.Pointer[Position]

	key      []byte // of tickets
	version  int    // of the server, as server_version_num
	listener *pgx.ConnConfig

	reloading sync.Mutex

	mu      sync.Mutex
	chains  map[chainKey]*Chain
	unmade  map[chainKey]notMade // what cannot be made as things are
	told    map[uint32]unmade    // what the log has said of that it cannot be made
	makings map[chainKey]*making
	warming map[uint32]bool // relations that are prepared in the background
	seen    map[int]int     // chain -> the last generation that was opened here
	heard   map[int]heard   // by chain; nil until a snapshot has been read
}

// Open connects to the database and reads the first snapshot. The connection
// string names a role with tailor_owner's privileges.
func Open(ctx context.Context, dsn string, log *slog.Logger) (*Catalog, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("service connection: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "tailor"
	config.ConnConfig.RuntimeParams["role"] = "tailor_owner" // who owns what is made, whoever makes it
	config.ConnConfig.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	config.ConnConfig.RuntimeParams["datestyle"] = "ISO, YMD" // as PrintValues
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	// Hashes of rows are compared with those that tailor.build_epoch makes.
	config.ConnConfig.RuntimeParams["intervalstyle"] = "iso_8601"
	config.ConnConfig.RuntimeParams["bytea_output"] = "hex"
	config.ConnConfig.RuntimeParams["extra_float_digits"] = "1"
	// What is decided after a wait is decided by what the other one has committed.
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "read committed"
	// What has been shown must outlive the server, whatever others may lose.
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	// Making a release may take hours, of which the session sleeps while blocks are made.
	for _, timeout := range []string{
		"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout",
	} {
		config.ConnConfig.RuntimeParams[timeout] = "0"
	}
	// with it, PostgreSQL takes 1.7 s for a snapshot that it reads in 0.1
	config.ConnConfig.RuntimeParams["jit"] = "off"
	config.MaxConns = max(config.MaxConns, 2*makersAtOnce)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("service connection: %w", err)
	}
	c := &Catalog{
		Patience: DefaultPatience, PartRows: DefaultPartRows, pool: pool, log: log,
		listener: config.ConnConfig.Copy(),
		chains:   make(map[chainKey]*Chain), seen: make(map[int]int),
		makings: make(map[chainKey]*making), makers: make(chan struct{}, makersAtOnce),
		warming: make(map[uint32]bool), warmers: make(chan struct{}, makersAtOnce),
		told: make(map[uint32]unmade), unmade: make(map[chainKey]notMade),
	}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.start(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// PrintValues has a transaction print values as hierarchies read them, and as labels show
// them, whatever the server, the database or the role has set.
const PrintValues = "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'"

// start reads what does not change and the first snapshot.
func (c *Catalog) start(ctx context.Context) error {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("service connection: %w", err)
	}
	defer conn.Release()
	var told bool
	if err := conn.QueryRow(ctx, `
		SELECT current_setting('server_version_num')::integer,
			key, to_regprocedure('tailor.written()') IS NOT NULL
		FROM tailor.admission_key`).Scan(&c.version, &c.key, &told); err != nil {
		return fmt.Errorf("read the key of tickets: %w", err)
	}
	if !told {
		return errors.New("the SQL side is of an earlier version: run tailor install")
	}
	return c.reload(ctx, conn.Conn())
}

// ServerVersion is the server's server_version_num when the catalog was opened.
func (c *Catalog) ServerVersion() int { return c.version }

// Close gives up what is being made, and ends all connections.
func (c *Catalog) Close() {
	c.end()
	c.pool.Close()
}

// Snapshot is the present picture of the policies, or an error of code 57P03
// while the database cannot be asked.
func (c *Catalog) Snapshot() (*Snapshot, error) {
	if s := c.snapshot.Load(); s != nil {
		return s, nil
	}
	return nil, unavailable(nil)
}

// unavailable is the answer while the catalog cannot be asked.
func unavailable(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.CannotConnectNow, "the policy catalog is unavailable").
		WithHint("Protected tables are refused until it is back; try again later.").Wrap(cause)
}

func (c *Catalog) reload(ctx context.Context, conn *pgx.Conn) error {
	c.reloading.Lock() // a later snapshot is not replaced by an earlier one
	defer c.reloading.Unlock()
	seen := c.allSeen() // before the database says how it is
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{
		IsoLevel:   pgx.RepeatableRead,
		AccessMode: pgx.ReadOnly,
	},
		func(tx pgx.Tx) error {
			s, err := load(ctx, tx)
			if err != nil {
				return err
			}
			if s.lacks(seen) {
				return errLost
			}
			if reflect.DeepEqual(c.snapshot.Load(), s) {
				return nil // plans made under the old one stay good
			}
			position, err := c.advance(ctx, tx.QueryRow)
			if err != nil {
				return err
			}
			c.snapshot.Store(s)
			c.forget(s)
			c.hear(s, position)
			return nil
		})
}

// A snapshot that no notification renewed is read again after this time, so
// that tables made without a word to Tailor are known by their columns.
const snapshotAge = 15 * time.Second

// Watch keeps the snapshot in step with the database until the context ends.
// While the database is away there is no snapshot, and protected queries are
// refused.
func (c *Catalog) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		c.snapshot.Store(nil)
		if errors.Is(err, errLost) {
			err = c.noteLoss(ctx)
		}
		c.log.Warn("catalog unavailable", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Whoever may log in may notify: the snapshot is read reloadBurst times at once at most, and then
// every reloadEvery.
const (
	reloadEvery = 20 * time.Millisecond
	reloadBurst = 20
)

// listen holds one connection, reloads after notifications, however many there are, and
// returns when the connection fails.
func (c *Catalog) listen(ctx context.Context) error {
	told := false
	config := c.listener.Copy()
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { told = true }
	// A connection of its own: the pool may be busy with what the news are about.
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN tailor"); err != nil {
		return err
	}
	may := reloadBurst
	for {
		told = false
		started := time.Now()
		if err := c.reload(ctx, conn); err != nil {
			return err
		}
		c.warmUp(ctx)
		if !told {
			if err := await(ctx, conn); err != nil {
				return err
			}
		}
		may = min(reloadBurst, may-1+int(time.Since(started)/reloadEvery))
		if may <= 0 {
			select {
			case <-time.After(reloadEvery):
			case <-ctx.Done():
			}
		}
	}
}

// await returns when the snapshot is to be read again.
func await(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotAge)
	defer cancel()
	err := conn.PgConn().WaitForNotification(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
