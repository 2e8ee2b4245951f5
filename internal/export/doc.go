// Package export writes what a reader is shown of tables as files: CSV, SQL or Parquet, with
// a dictionary of the columns and checksums. It reads through the proxy as any client does, so
// that the files hold the rows that answers show, and the audit log holds who was shown them.
package export
