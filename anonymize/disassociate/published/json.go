package published

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// formatVersion is the version of the JSON format.
const formatVersion = 1

// The JSON format names codes by their text. A repeated occurrence is an
// object {"code": …, "nth": n}, so that no separator can collide with a code.
type (
	formJSON struct {
		Version         int           `json:"version"`
		K               int           `json:"k"`
		M               int           `json:"m"`
		Diversity       int           `json:"diversity"`
		StrictDiversity bool          `json:"strict_diversity,omitempty"`
		MayBeEmpty      bool          `json:"may_be_empty,omitempty"`
		Sensitive       []Code        `json:"sensitive,omitempty"`
		Clusters        []clusterJSON `json:"clusters"`
		Shared          []chunkJSON   `json:"shared_chunks"`
	}
	clusterJSON struct {
		Size   int         `json:"size"`
		Record []chunkJSON `json:"record_chunks"`
		Items  []Code      `json:"item_chunk"`
	}
	chunkJSON struct {
		Scope []int32         `json:"clusters,omitempty"`
		Codes []Code          `json:"codes"`
		Sub   []subRecordJSON `json:"subrecords"`
		Empty int             `json:"empty"`
	}
	subRecordJSON struct {
		Codes []Code `json:"codes"`
		Count int    `json:"count"`
	}
	repeatedJSON struct {
		Code string `json:"code"`
		Nth  int    `json:"nth"`
	}
)

// MarshalJSON writes a first occurrence as a string, a later one as an object.
func (c Code) MarshalJSON() ([]byte, error) {
	if c.Nth == 1 {
		return json.Marshal(c.Text)
	}
	return json.Marshal(repeatedJSON{c.Text, c.Nth})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Code) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		c.Nth = 1
		return json.Unmarshal(data, &c.Text)
	}
	var r repeatedJSON
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Nth < 2 {
		return &MalformedError{"code", "a repeated occurrence below 2"}
	}
	c.Text, c.Nth = r.Code, r.Nth
	return nil
}

// Encode writes the form as JSON.
func (f *Form) Encode(w io.Writer) error {
	out := formJSON{
		Version: formatVersion, K: f.Promise.K, M: f.Promise.M,
		Diversity: f.Promise.Diversity, StrictDiversity: f.Promise.StrictDiversity,
		MayBeEmpty: f.Promise.MayBeEmpty,
		Sensitive:  f.names(f.Promise.Sensitive),
		Clusters:   make([]clusterJSON, len(f.Clusters)),
		Shared:     make([]chunkJSON, len(f.Shared)),
	}
	for i := range f.Clusters {
		c := &f.Clusters[i]
		cj := clusterJSON{Size: c.Size, Record: make([]chunkJSON, len(c.Record)), Items: f.names(c.Items)}
		for j := range c.Record {
			cj.Record[j] = f.chunkToJSON(&c.Record[j])
		}
		out.Clusters[i] = cj
	}
	for i := range f.Shared {
		out.Shared[i] = f.chunkToJSON(&f.Shared[i].Chunk)
		out.Shared[i].Scope = f.Shared[i].Scope
	}
	if err := json.NewEncoder(w).Encode(&out); err != nil {
		return fmt.Errorf("writing the published form: %w", err)
	}
	return nil
}

func (f *Form) chunkToJSON(c *Chunk) chunkJSON {
	out := chunkJSON{Codes: f.names(c.Codes), Sub: make([]subRecordJSON, len(c.Sub)), Empty: c.Empty}
	for i := range c.Sub {
		out.Sub[i] = subRecordJSON{Codes: f.names(c.Sub[i].Items), Count: c.Sub[i].Count}
	}
	return out
}

func (f *Form) names(items []Item) []Code {
	out := make([]Code, len(items))
	for i, it := range items {
		out[i] = f.Codes[it]
	}
	return out
}

// Decode reads a form that Encode wrote and checks its shape (see
// [Form.Check]). It trusts nothing about the input.
func Decode(r io.Reader) (*Form, error) {
	var in formJSON
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, fmt.Errorf("reading the published form: %w", err)
	}
	if in.Version != formatVersion {
		return nil, &MalformedError{"version", fmt.Sprintf("%d is not %d", in.Version, formatVersion)}
	}
	d := newDecoder(&in)
	f := &Form{
		Promise: Promise{
			K: in.K, M: in.M, Diversity: in.Diversity, StrictDiversity: in.StrictDiversity,
			MayBeEmpty: in.MayBeEmpty,
			Sensitive:  d.items(in.Sensitive),
		},
		Codes:    d.codes,
		Clusters: make([]Cluster, len(in.Clusters)),
		Shared:   make([]SharedChunk, len(in.Shared)),
	}
	for i := range in.Clusters {
		cj := &in.Clusters[i]
		c := Cluster{Size: cj.Size, Record: make([]Chunk, len(cj.Record)), Items: d.items(cj.Items)}
		for j := range cj.Record {
			c.Record[j] = d.chunk(&cj.Record[j])
		}
		f.Clusters[i] = c
	}
	for i := range in.Shared {
		f.Shared[i] = SharedChunk{Scope: in.Shared[i].Scope, Chunk: d.chunk(&in.Shared[i])}
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f, nil
}

// decoder numbers the codes of a form in order.
type decoder struct {
	codes []Code
	item  map[Code]Item
}

func newDecoder(in *formJSON) *decoder {
	d := &decoder{item: make(map[Code]Item)}
	add := func(codes []Code) {
		for _, c := range codes {
			if _, ok := d.item[c]; !ok {
				d.item[c] = 0
				d.codes = append(d.codes, c)
			}
		}
	}
	add(in.Sensitive)
	for i := range in.Clusters {
		add(in.Clusters[i].Items)
		for j := range in.Clusters[i].Record {
			add(in.Clusters[i].Record[j].Codes)
		}
	}
	for i := range in.Shared {
		add(in.Shared[i].Codes)
	}
	slices.SortFunc(d.codes, Code.Compare)
	for i, c := range d.codes {
		d.item[c] = Item(i)
	}
	return d
}

// items maps codes to numbers. A code outside every chunk becomes a number
// outside the form, which Check refuses.
func (d *decoder) items(codes []Code) []Item {
	out := make([]Item, len(codes))
	for i, c := range codes {
		it, ok := d.item[c]
		if !ok {
			it = Item(len(d.codes))
		}
		out[i] = it
	}
	return out
}

func (d *decoder) chunk(in *chunkJSON) Chunk {
	c := Chunk{Codes: d.items(in.Codes), Sub: make([]SubRecord, len(in.Sub)), Empty: in.Empty}
	for i := range in.Sub {
		c.Sub[i] = SubRecord{Items: d.items(in.Sub[i].Codes), Count: in.Sub[i].Count}
	}
	return c
}
