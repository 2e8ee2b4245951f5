package export

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// rowGroup is how many rows are kept in memory until they are written.
const rowGroup = 50_000

// parquetFile is a Parquet file in the making. Each column is optional, and has the logical
// type that its type in PostgreSQL corresponds to: boolean, int, float, decimal of up to 18
// digits, date, timestamp in microseconds; all else is text as PostgreSQL writes it.
type parquetFile struct {
	writer  *parquet.GenericWriter[any]
	columns []parquetColumn
	row     parquet.Row
	rows    int
	null    []int64 // of each column, the values that are NULL because Parquet has none for them
}

// parquetColumn says how a column is stored, and reads its values. An error is of one that
// Parquet cannot hold: an infinite date, a decimal that is NaN.
type parquetColumn struct {
	node  parquet.Node
	value func(text string) (parquet.Value, error) // from PostgreSQL's text form
}

// orderedGroup is a group of columns that keep their order.
type orderedGroup struct {
	parquet.Group
	order []string
}

// Fields are the columns in order.
func (g orderedGroup) Fields() []parquet.Field {
	fields := g.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(g.order, a.Name()) - slices.Index(g.order, b.Name())
	})
	return fields
}

// newParquetFile begins a file with the columns of an answer, whose names are different.
func newParquetFile(to io.Writer, fields []pgconn.FieldDescription) *parquetFile {
	group := orderedGroup{Group: parquet.Group{}}
	f := &parquetFile{row: make(parquet.Row, len(fields)), null: make([]int64, len(fields))}
	for _, field := range fields {
		c := parquetColumnOf(field)
		f.columns = append(f.columns, c)
		group.order = append(group.order, field.Name)
		group.Group[field.Name] = parquet.Optional(c.node)
	}
	f.writer = parquet.NewGenericWriter[any](to, parquet.NewSchema("release", group),
		parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("tailor", "", ""))
	return f
}

// write adds a row of values in text form, nil for NULL.
func (f *parquetFile) write(values [][]byte) error {
	for i, text := range values {
		if text == nil {
			f.row[i] = parquet.NullValue().Level(0, 0, i)
			continue
		}
		v, err := f.columns[i].value(string(text))
		if err != nil {
			f.row[i] = parquet.NullValue().Level(0, 0, i)
			f.null[i]++
			continue
		}
		f.row[i] = v.Level(0, 1, i)
	}
	if _, err := f.writer.WriteRows([]parquet.Row{f.row}); err != nil {
		return err
	}
	if f.rows++; f.rows%rowGroup == 0 {
		return f.writer.Flush()
	}
	return nil
}

// close ends the file.
func (f *parquetFile) close() error { return f.writer.Close() }

// parquetColumnOf is how a column of an answer is stored.
func parquetColumnOf(field pgconn.FieldDescription) parquetColumn {
	switch field.DataTypeOID {
	case pgtype.BoolOID:
		node := parquet.Leaf(parquet.BooleanType)
		return parquetColumn{node, func(text string) (parquet.Value, error) {
			return parquet.BooleanValue(text == "t"), nil
		}}
	case pgtype.Int2OID, pgtype.Int4OID:
		return parquetColumn{parquet.Int(32), func(text string) (parquet.Value, error) {
			n, err := strconv.ParseInt(text, 10, 32)
			return parquet.Int32Value(int32(n)), err
		}}
	case pgtype.Int8OID:
		return parquetColumn{parquet.Int(64), func(text string) (parquet.Value, error) {
			n, err := strconv.ParseInt(text, 10, 64)
			return parquet.Int64Value(n), err
		}}
	case pgtype.Float4OID:
		return parquetColumn{parquet.Leaf(parquet.FloatType), func(text string) (parquet.Value, error) {
			n, err := strconv.ParseFloat(text, 32)
			return parquet.FloatValue(float32(n)), err
		}}
	case pgtype.Float8OID:
		node := parquet.Leaf(parquet.DoubleType)
		return parquetColumn{node, func(text string) (parquet.Value, error) {
			n, err := strconv.ParseFloat(text, 64)
			return parquet.DoubleValue(n), err
		}}
	case pgtype.DateOID:
		return parquetColumn{parquet.Date(), func(text string) (parquet.Value, error) {
			t, err := timeOf(text, "01-02")
			return parquet.Int32Value(int32(t.Unix() / (24 * 60 * 60))), err
		}}
	case pgtype.TimestampOID:
		return timestampColumn(false, "01-02 15:04:05.999999")
	case pgtype.TimestamptzOID:
		return timestampColumn(true, "01-02 15:04:05.999999Z07")
	case pgtype.NumericOID:
		if precision, scale := decimals(field.TypeModifier); precision > 0 {
			return decimalColumn(precision, scale)
		}
	}
	return parquetColumn{parquet.String(), func(text string) (parquet.Value, error) {
		return parquet.ByteArrayValue([]byte(text)), nil
	}}
}

func timestampColumn(utc bool, layout string) parquetColumn {
	node := parquet.TimestampAdjusted(parquet.Microsecond, utc)
	return parquetColumn{node, func(text string) (parquet.Value, error) {
		t, err := timeOf(text, layout)
		if micro := t.UnixMicro(); err == nil && !time.UnixMicro(micro).Equal(t) {
			err = errors.New("too late for microseconds in 64 bits")
		}
		return parquet.Int64Value(t.UnixMicro()), err
	}}
}

// timeOf reads a date or timestamp as PostgreSQL writes it in ISO style: the year with four
// digits or more, the rest as in the layout, and whether it is before Christ. The year before
// 1 is 0, as in PostgreSQL and Parquet.
func timeOf(text, layout string) (time.Time, error) {
	text, before := strings.CutSuffix(text, " BC")
	digits, rest, _ := strings.Cut(text, "-")
	year, err := strconv.Atoi(digits)
	if err != nil {
		return time.Time{}, err
	}
	if before {
		year = 1 - year
	}
	t, err := time.Parse(layout, rest) // of year 0, which has a 29 February
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(),
		time.UTC), err
}

// decimals are the digits of numeric(precision, scale) by its modifier; 0 where it has none,
// or does not fit in 64 bits.
func decimals(modifier int32) (precision, scale int) {
	if modifier < 4 {
		return 0, 0
	}
	precision, scale = int((modifier-4)>>16)&0xffff, int(modifier-4)&0x7ff
	if precision > 18 || scale > precision {
		return 0, 0
	}
	return precision, scale
}

func decimalColumn(precision, scale int) parquetColumn {
	node := parquet.Decimal(scale, precision, parquet.Int64Type)
	return parquetColumn{node, func(text string) (parquet.Value, error) {
		whole, fraction, _ := strings.Cut(text, ".")
		n, ok := new(big.Int).SetString(whole+(fraction + strings.Repeat("0", scale))[:scale], 10)
		if !ok || len(fraction) > scale || !n.IsInt64() {
			return parquet.Value{}, fmt.Errorf("not a decimal of scale %d", scale)
		}
		return parquet.Int64Value(n.Int64()), nil
	}}
}
