package audit

import (
	"errors"
	"fmt"
)

// Config says where records go and what they hold.
type Config struct {
	// File is the file of JSON lines, made with mode 0600 and continued where it
	// exists; empty for none. One proxy writes a file.
	File string
	// Table says whether records go to the table in the database as well. With
	// neither file nor table there is no log, which is a fault.
	Table bool
	// SQL says what is kept of a statement's text.
	SQL SQL
	// FileBytes is the size beyond which the file is set aside under the next
	// number, FILE.00000001 and so on, and a new one begun.
	FileBytes int64
	// TotalBytes is the most that the file and those set aside may hold; beyond
	// it protected queries are refused until files have been moved away. 0 sets
	// no bound but the disk's.
	TotalBytes int64
}

// DefaultConfig keeps the table only, without literals.
func DefaultConfig() Config {
	return Config{Table: true, SQL: SQLRedacted, FileBytes: 64 << 20}
}

// smallestFile holds the longest line.
const smallestFile = 1 << 20

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if c.File == "" && !c.Table {
		faults = append(faults, errors.New("audit: neither a file nor the table is to be written"))
	}
	switch c.SQL {
	case SQLRedacted, SQLFull, SQLNone:
	default:
		faults = append(faults, fmt.Errorf("audit.sql: %q is none of redacted, full, none", c.SQL))
	}
	if c.FileBytes < smallestFile {
		faults = append(faults, fmt.Errorf("audit.file_bytes: must be at least %d", smallestFile))
	}
	if c.TotalBytes < 0 || c.TotalBytes > 0 && c.TotalBytes < c.FileBytes {
		faults = append(faults, errors.New("audit.total_bytes: must be 0 or at least audit.file_bytes"))
	}
	return errors.Join(faults...)
}
