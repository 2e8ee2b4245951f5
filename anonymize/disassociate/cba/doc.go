// Package cba is the clustering-based anonymizer of [Loukides2010], which
// generalizes diagnosis codes to sets of codes within their utility
// constraint, and suppresses what it cannot generalize. It is the baseline
// that disassociation is compared with ([Loukides2014]); nothing is
// published with it.
package cba
