// Package identify says what the columns of an unknown table may be: direct
// identifiers, quasi-identifiers, sensitive or non-sensitive attributes.
//
// In go figures of each column ([Column]: how often its values occur, what
// shape they have, never the values); out come the share of missing values,
// the re-identification risk rate and the class that [Mansour2021] derives from
// it, as implemented in [Menten2024], and a suggestion that weighs names, types
// and shapes as well ([Column.Suggest]).
//
// The second stage of [Menten2024], how many quasi-identifiers to de-identify
// (the QID dimension), is [Dimensions].
//
// The package is pure: it reads neither files nor databases.
package identify
