module github.com/hiatus-tailor/tailor

go 1.26

require (
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/jackc/chunkreader/v2 v2.0.0 // indirect
	github.com/jackc/pgio v1.0.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgproto3/v2 v2.3.3 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/pganalyze/pg_query_go/v5 v5.1.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/protobuf v1.31.0 // indirect
)
