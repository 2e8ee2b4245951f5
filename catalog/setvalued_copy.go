package catalog

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// copyWriter writes rows in COPY's text format. The first error stays.
type copyWriter struct {
	to     io.Writer
	buffer []byte
	err    error
	inside bool // a row has begun
}

// field ends the field before and returns the buffer to append to.
func (w *copyWriter) field() {
	if w.inside {
		w.buffer = append(w.buffer, '\t')
	}
	w.inside = true
}

func (w *copyWriter) number(n int) {
	w.field()
	w.buffer = strconv.AppendInt(w.buffer, int64(n), 10)
}

func (w *copyWriter) real(x float64) {
	w.field()
	w.buffer = strconv.AppendFloat(w.buffer, x, 'g', -1, 64)
}

func (w *copyWriter) boolean(b bool) {
	w.field()
	w.buffer = strconv.AppendBool(w.buffer, b)
}

func (w *copyWriter) text(value string) {
	w.field()
	w.buffer = appendEscaped(w.buffer, value)
}

func (w *copyWriter) null() {
	w.field()
	w.buffer = append(w.buffer, `\N`...)
}

func (w *copyWriter) textOrNull(value string, ok bool) {
	if ok {
		w.text(value)
	} else {
		w.null()
	}
}

// items writes an array of items by the numbers that stand for them.
func (w *copyWriter) items(numbers []int, items []published.Item) {
	w.field()
	separator := byte('{')
	for _, it := range items {
		w.buffer = strconv.AppendInt(append(w.buffer, separator), int64(numbers[it]), 10)
		separator = ','
	}
	w.buffer = append(w.buffer, '}')
}

func (w *copyWriter) end() {
	w.buffer = append(w.buffer, '\n')
	w.inside = false
	if len(w.buffer) >= copyBuffer {
		w.flush()
	}
}

func (w *copyWriter) flush() {
	if w.err == nil {
		_, w.err = w.to.Write(w.buffer)
	}
	w.buffer = w.buffer[:0]
}

// quotable escapes what ends or escapes a quoted element of an array.
var quotable = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// array writes codes as an array; every element is quoted, so that no code can
// be taken for a separator or for NULL.
func (w *copyWriter) array(codes []published.Code, items published.Record) {
	w.field()
	separator := byte('{')
	for _, it := range items {
		w.buffer = append(w.buffer, separator, '"')
		w.buffer = append(appendEscaped(w.buffer, quotable.Replace(codes[it].Text)), '"')
		separator = ','
	}
	w.buffer = append(w.buffer, '}')
}

// writeRows writes the reconstruction in the shape of the table: a row a
// subject or a row a code, either in random order.
func (p *publication) writeRows(w *copyWriter, r *Relation) {
	subject := r.Column(r.Subject)
	begin := func(row int, record *publishedRecord) {
		w.number(p.before.rows + row)
		w.number(p.before.clusters + int(record.cluster)) // the tuple
		w.number(int(record.number))
		if subject != nil && subject.Pseudonym {
			w.number(int(record.number))
		}
	}
	if r.Column(r.SetValued.Column).Category == "A" {
		for i := range p.records {
			begin(i, &p.records[i])
			w.array(p.form.Codes, p.records[i].items)
			w.end()
		}
		return
	}
	for i, c := range p.cells {
		begin(i, &p.records[c.record])
		w.text(p.form.Codes[c.item].Text)
		w.end()
	}
}

// writeItems writes the codes that are new by their numbers.
func (p *publication) writeItems(w *copyWriter) {
	for _, it := range p.fresh {
		code := p.form.Codes[it]
		w.number(p.items[it])
		w.text(code.Text)
		w.number(code.Nth)
		w.end()
	}
}

// Kinds of places, as tailor.case_count reads them.
const (
	inRecordChunk = "r"
	inSharedChunk = "s"
	inItemChunk   = "i"
)

// writePlaces writes where each code is in each cluster. Record chunks and
// shared chunks are numbered as writeSubRecords numbers them; a code of an item
// chunk is a chunk of its own, with a negative number.
func (p *publication) writePlaces(w *copyWriter) {
	place := func(it published.Item, cluster int, kind string, chunk, slots int, share float64) {
		w.number(p.items[it])
		w.number(p.before.clusters + cluster)
		w.number(p.form.Clusters[cluster].Size)
		w.text(kind)
		w.number(chunk)
		w.number(slots)
		if share > 0 {
			w.real(share)
		} else {
			w.null()
		}
		w.end()
	}
	chunk := p.before.chunks
	for cluster := range p.form.Clusters {
		c := &p.form.Clusters[cluster]
		for i := range c.Record {
			for _, it := range c.Record[i].Codes {
				place(it, cluster, inRecordChunk, chunk, c.Size, 0)
			}
			chunk++
		}
		for _, it := range c.Items {
			place(it, cluster, inItemChunk, -1-p.items[it], c.Size, 0)
		}
	}
	for i := range p.form.Shared {
		s := &p.form.Shared[i]
		for _, cluster := range s.Scope {
			for _, it := range s.Codes {
				place(it, int(cluster), inSharedChunk, chunk, s.NonEmpty()+s.Empty,
					s.Share(p.form.Clusters[cluster].Size))
			}
		}
		chunk++
	}
}

// writeSubRecords writes the distinct sub-records of every chunk.
func (p *publication) writeSubRecords(w *copyWriter) {
	chunk := p.before.chunks
	write := func(c *published.Chunk) {
		for i := range c.Sub {
			w.number(chunk)
			w.items(p.items, c.Sub[i].Items)
			w.number(c.Sub[i].Count)
			w.end()
		}
		chunk++
	}
	for cluster := range p.form.Clusters {
		for i := range p.form.Clusters[cluster].Record {
			write(&p.form.Clusters[cluster].Record[i])
		}
	}
	for i := range p.form.Shared {
		write(&p.form.Shared[i].Chunk)
	}
}

// writeMembers writes which cluster each person is in.
func (p *publication) writeMembers(w *copyWriter) {
	for _, m := range p.of {
		w.text(m.person)
		w.number(p.before.clusters + int(m.cluster))
		w.end()
	}
}

// copyText streams what encode writes, in COPY's text format.
func copyText(
	ctx context.Context, tx pgx.Tx, statement string, encode func(io.Writer) error,
) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(encode(writer)) }()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, reader, statement)
	reader.CloseWithError(err) // frees the encoder where the server stopped first
	return err
}

// copyBuffer is how much is encoded before it is handed on.
const copyBuffer = 64 << 10

// appendEscaped writes a value in COPY's text format.
func appendEscaped(buffer []byte, value string) []byte {
	for i := range len(value) {
		switch value[i] {
		case '\\':
			buffer = append(buffer, `\\`...)
		case '\n':
			buffer = append(buffer, `\n`...)
		case '\r':
			buffer = append(buffer, `\r`...)
		case '\t':
			buffer = append(buffer, `\t`...)
		default:
			buffer = append(buffer, value[i])
		}
	}
	return buffer
}
