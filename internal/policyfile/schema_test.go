package policyfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// schema is the published JSON Schema.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("../../docs/schema/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	document, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("policy.schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// verdict is what the schema says of a file, as an editor asks it. ok is false
// where the text is no YAML that has a form in JSON.
func verdict(t *testing.T, s *jsonschema.Schema, text string) (err error, ok bool) {
	t.Helper()
	var value any
	if yaml.Unmarshal([]byte(text), &value) != nil {
		return nil, false
	}
	raw, failed := json.Marshal(value)
	if failed != nil {
		return nil, false
	}
	document, failed := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if failed != nil {
		t.Fatal(failed)
	}
	return s.Validate(document), true
}

// TestTheSchemaAndTheLinterAgree holds both against sound files and every
// faulty one: what the schema refuses, lint refuses, and what lint accepts, the
// schema accepts. Which faults only lint can see is said with each.
func TestTheSchemaAndTheLinterAgree(t *testing.T) {
	s := schema(t)
	var canonical bytes.Buffer
	f, faults := policyfile.Parse([]byte(complete))
	if faults != nil {
		t.Fatal(faults)
	}
	if err := f.Write(&canonical); err != nil {
		t.Fatal(err)
	}
	for _, good := range []string{complete, sound, canonical.String()} {
		if err, ok := verdict(t, s, good); err != nil || !ok {
			t.Errorf("the schema refuses what lint accepts: %v\n%s", err, good)
		}
	}
	for _, c := range faulty {
		t.Run(c.claim, func(t *testing.T) {
			err, ok := verdict(t, s, strings.Replace(sound, c.old, c.new, 1))
			if refused := err != nil; refused != c.schema && (ok || c.schema) {
				t.Errorf("the schema refuses it: %v, want %v (%v)", refused, c.schema, err)
			}
		})
	}
}

func TestTheSchemaNamesTheBuiltInHierarchies(t *testing.T) {
	raw, err := os.ReadFile("../../docs/schema/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, 8)
	for _, h := range policyfile.Builtins() {
		names = append(names, h.Name)
		if err := h.Check(); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
		if !strings.Contains(string(raw), h.Name) {
			t.Errorf("the schema does not name %s", h.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not by name: %v", names)
	}
}
