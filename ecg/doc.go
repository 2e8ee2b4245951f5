// Package ecg is the Execution Chain Graph of the Hiatus Tailor paper
// ([Chen] §4): the composer orders a query's quasi-identifiers into
// stages by where they act, and the tailor assesses the stages in order.
//
// Uses of quasi-identifiers come from the planner, the root of an epoch from the
// catalog; out goes an assessment for EXPLAIN and the audit ([Root.Assess]). What
// the root is made for, a declared workload, decides its weights ([MakeRoot]).
// The package is pure.
//
// [Tailor] over a [Chain] is the paper's own way, which refines as it is asked and
// compares candidates: experiments repeat the paper's figures with it.
package ecg
