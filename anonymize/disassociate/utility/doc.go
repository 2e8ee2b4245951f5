// Package utility says how useful a published set-valued data set still is,
// and makes what the measures need: workloads of frequent sets of codes, and
// utility constraints from a classification or from the data.
//
// In flow the original data and anything that estimates counts (package
// published, package cba, or a data set reconstructed from either); out flow
// the average relative error of a workload (ARE) and the matching error of
// utility constraints (MRE), both from [Loukides2014].
//
// Everything here sees original data and stays on the privileged side.
package utility
