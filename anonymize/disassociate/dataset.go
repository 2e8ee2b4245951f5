package disassociate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// Item numbers a code of a [Dataset]. Items are in code order, so that "ties by
// code string" is a comparison of numbers.
type Item = published.Item

// Dataset is a list of records, each a set of codes. It is immutable
// and safe for concurrent use.
type Dataset struct {
	codes []published.Code
	start []uint32 // record -> first of its items; one more than records
	items []Item   // ascending within a record
}

// ErrEmptyRecord is returned for a record without codes: unless readers are told that
// there are such (Config.MayBeEmpty), nothing about it can be published, and the
// empty-record rule needs records that hold something.
var ErrEmptyRecord = errors.New("record without codes")

// Builder collects the records of a [Dataset]. The zero value is ready.
type Builder struct {
	// MayBeEmpty takes records without codes.
	MayBeEmpty bool

	item  map[published.Code]Item
	codes []published.Code
	start []uint32
	items []Item
	seen  map[string]int
}

// Add appends a record. A code that stands n times in it becomes n codes, see
// [published.Code]. It fails with [ErrEmptyRecord].
func (b *Builder) Add(codes ...string) error {
	if len(codes) == 0 && !b.MayBeEmpty {
		return ErrEmptyRecord
	}
	if len(b.items)+len(codes) > math.MaxInt32 {
		return fmt.Errorf("more than %d codes in all records", math.MaxInt32)
	}
	if b.item == nil {
		b.item = make(map[published.Code]Item)
		b.seen = make(map[string]int)
	}
	clear(b.seen)
	b.start = append(b.start, uint32(len(b.items)))
	for _, text := range codes {
		b.seen[text]++
		code := published.Code{Text: text, Nth: b.seen[text]}
		it, ok := b.item[code]
		if !ok {
			code.Text = strings.Clone(text)
			it = Item(len(b.codes))
			b.codes = append(b.codes, code)
			b.item[code] = it
		}
		b.items = append(b.items, it)
	}
	return nil
}

// Dataset returns what was added. The builder must not be used afterwards.
func (b *Builder) Dataset() *Dataset {
	order := make([]Item, len(b.codes))
	for i := range order {
		order[i] = Item(i)
	}
	slices.SortFunc(order, func(x, y Item) int { return b.codes[x].Compare(b.codes[y]) })
	d := &Dataset{
		codes: make([]published.Code, len(order)),
		start: append(b.start, uint32(len(b.items))),
		items: b.items,
	}
	renumber := make([]Item, len(order))
	for to, from := range order {
		d.codes[to] = b.codes[from]
		renumber[from] = Item(to)
	}
	for i, it := range d.items {
		d.items[i] = renumber[it]
	}
	for r := range d.Len() {
		slices.Sort(d.Items(r))
	}
	return d
}

// Len is the number of records.
func (d *Dataset) Len() int { return len(d.start) - 1 }

// Items lists the codes of a record, ascending. The slice belongs to the data
// set and must not be changed.
func (d *Dataset) Items(record int) []Item { return d.items[d.start[record]:d.start[record+1]] }

// Codes lists the distinct codes in the order of their items. The slice
// belongs to the data set and must not be changed.
func (d *Dataset) Codes() []published.Code { return d.codes }

// Occurrences is the number of codes in all records.
func (d *Dataset) Occurrences() int { return len(d.items) }

// AppendCodes appends the codes of a record as they were added, a repeated
// code as often as it stood there, in code order.
func (d *Dataset) AppendCodes(dst []string, record int) []string {
	for _, it := range d.Items(record) {
		dst = append(dst, d.codes[it].Text)
	}
	return dst
}

// itemsOf lists the items of a code: one per occurrence within a record.
func (d *Dataset) itemsOf(text string) []Item {
	first, _ := slices.BinarySearchFunc(d.codes, published.Code{Text: text}, published.Code.Compare)
	var items []Item
	for i := first; i < len(d.codes) && d.codes[i].Text == text; i++ {
		items = append(items, Item(i))
	}
	return items
}

// maxLine is the longest accepted line of a data file, in bytes.
const maxLine = 16 << 20

// ReadDataset reads one record a line, codes separated by white space. Blank
// lines are skipped and counted. Errors name a line, never a code.
func ReadDataset(r io.Reader) (d *Dataset, blank int, err error) {
	var b Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	line := 0
	for lines.Scan() {
		line++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			blank++
			continue
		}
		if err := b.Add(fields...); err != nil {
			return nil, blank, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, blank, fmt.Errorf("after line %d: %w", line, err)
	}
	return b.Dataset(), blank, nil
}
