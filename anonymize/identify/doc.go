// Package identify says what the columns of an unknown table may be: direct
// identifiers, quasi-identifiers, sensitive or non-sensitive attributes.
//
// In go figures of each column ([Column]: how often its values occur, what
// shape and content they have); out come the share of missing values, the
// re-identification risk rate and the class that [Mansour2021] derives from it,
// as implemented in [Menten2024], and a suggestion that weighs content, names and
// types as well ([Column.Suggest]). Nothing that comes out holds a value, but for
// groups of values that are proposed as a hierarchy ([Group]).
//
// Columns are looked at together as [Rows], cells as numbers: which small sets
// of them single people out ([Combine]), and which determine others ([Depend]).
//
// The second stage of [Menten2024], how many quasi-identifiers to de-identify
// (the QID dimension), is [Dimensions].
//
// The package is pure: it reads neither files nor databases.
package identify
