package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// readers is the role that all readers are members of.
const readers = "tailor_reader"

// keeps is the condition that the session is Tailor's own, or in a procedure of
// Tailor's, and not one that reads through a view of Tailor's.
const keeps = "(pg_catalog.pg_has_role(SESSION_USER, 'tailor_owner', 'MEMBER')" +
	" OR CURRENT_USER = 'tailor_owner')"

// admitted is the condition that lets a statement read a part of a release.
func (c *Chain) admitted(admission int) string {
	return fmt.Sprintf("(SELECT tailor.admit(%d, %d, %d))", admission, c.edition, releaseLayout)
}

// fence ends a subquery that PostgreSQL neither dissolves in the query around it
// nor moves conditions into. A number is no bigint before it is cast, and
// PostgreSQL looks at it too early: for an OFFSET 0 it plans no parallel scan.
const fence = " OFFSET '0'"

// createView is the statement that defines a release over an epoch. Admission is asked
// by the table, before it shows a row to anything (publishTables).
func (c *Chain) createView(r *Relation, dictionaries []*dictionary) string {
	list := c.shownList(r, dictionaries, "")
	if r.Parent != nil {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return c.viewOver(c.name(), list, "")
}

// shownList are the columns of a release with their labels, but for one by its name.
func (c *Chain) shownList(r *Relation, dictionaries []*dictionary, without string) []string {
	var list []string
	for i := range r.Columns {
		column := &r.Columns[i]
		switch {
		case column.Name == without:
		case column.Class == QuasiIdentifier:
			at := slices.IndexFunc(dictionaries, func(d *dictionary) bool { return d.column == column })
			list = append(list, fmt.Sprintf("e.%s AS %s", dictionaries[at].own("value"), ident(column.Name)))
		case column.IsPayload() && r.AggregateOnly:
			list = append(list, fmt.Sprintf("e.%s AS %s", column.insteadColumn(), ident(column.Name)))
		case column.Visible():
			list = append(list, "e."+ident(column.Name))
		}
	}
	own := dictionaries[:len(r.QuasiIdentifiers())]
	for _, d := range own {
		list = append(list, d.label(c.name())+" AS "+ident(d.column.LabelColumn()))
	}
	for _, d := range own {
		if r.Numbers(d.column) {
			list = append(list, fmt.Sprintf("e.%s AS %s", d.own("number"), ident(d.column.NumberColumn())))
		}
	}
	return list
}

// createParentView is the statement that defines what a release shows of the
// parent: the quasi-identifiers of each row's subject, under the parent's own
// names. It has the rows of the release.
func (c *Chain) createParentView(r *Relation, dictionaries []*dictionary) string {
	var list, labels []string
	for i, d := range dictionaries[len(dictionaries)-len(r.borrowed):] {
		column := &r.Parent.Columns[i]
		list = append(list, fmt.Sprintf("e.%s AS %s", d.own("value"), ident(column.Name)))
		labels = append(labels, d.label(c.name())+" AS "+ident(column.LabelColumn()))
	}
	list = append(append(list, labels...), fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	admitted := " WHERE " + c.admitted(parentAdmission(c.number))
	return c.viewOver(ParentView(c.name()), list, admitted)
}

// createLabelView is the statement that defines the one row with the labels of
// each numbered column, whether they are exact, the ends of what they cover, and values
// that are stored as an array: the number of a label is its place there, from 1. An array
// that has been joined to another is read from memory.
func (c *Chain) createLabelView(r *Relation, dictionaries []*dictionary) string {
	var list []string
	for _, d := range dictionaries {
		if !d.listed {
			continue
		}
		list = append(list, fmt.Sprintf("pg_catalog.jsonb_concat(%[1]s, '[]') AS %[1]s",
			ident(d.column.LabelColumn())))
		array := func(part, column string) {
			list = append(list, fmt.Sprintf("pg_catalog.array_cat(%s, '{}') AS %s", d.own(part),
				ident(column)))
		}
		array("exact", d.column.ExactColumn())
		if d.isFixed() {
			array("values", d.column.ValuesColumn())
		}
		if d.column.IsMeasured() {
			array("low", d.column.LowColumn())
			array("high", d.column.HighColumn())
		}
	}
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM (SELECT * FROM "+
		"tailor_store.%s_label WHERE %s%s) c",
		LabelView(c.name()), strings.Join(list, ", "), c.name(), c.admitted(c.number), fence)
}

// viewOver is the statement that defines a view of a chain's rows, with a condition or
// without.
func (c *Chain) viewOver(name string, list []string, condition string) string {
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM %s e%s", name,
		strings.Join(list, ", "), c.table("row"), condition)
}

// views are those of a release that its readers read.
func (c *Chain) views(r *Relation) []string {
	views := []string{"tailor_release." + c.name()}
	if len(r.numbered()) > 0 || r.IsJoint() {
		views = append(views, "tailor_release."+LabelView(c.name()))
	}
	if r.Lent() {
		views = append(views, "tailor_release."+ParentView(c.name()))
	}
	if r.inFamily() {
		views = append(views, "tailor_release."+FamilyView(c.name()))
	}
	return views
}

// grantStatement lets a role, quoted already, read the views of a release.
func (c *Chain) grantStatement(r *Relation, role string) string {
	return fmt.Sprintf("GRANT SELECT ON %s TO %s", commas(c.views(r)), role)
}
