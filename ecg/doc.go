// Package ecg is the Execution Chain Graph of the Hiatus Tailor paper
// ([Chen] §4): the composer orders a query's quasi-identifiers into
// stages by where they act, and the tailor assesses the stages in order
// against the risk threshold and de-identifies where it is exceeded.
//
// Uses of quasi-identifiers come from the planner, a partition of the chain
// from the catalog; out go the partition that the answer may show and an
// assessment for EXPLAIN and the audit. The package is pure.
//
// The chain's partition is what earlier queries have been shown; a stage can
// only refine it. Aggregate risk is therefore the risk of everything that the
// audience has ever been shown, and stays below the threshold by construction.
package ecg
