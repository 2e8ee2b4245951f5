// Package published holds the published form of a disassociated set-valued
// data set, and what a reader can compute from it: estimates of counts with
// bounds, reconstructed data sets, and a report of what the form gives away.
//
// A record is a set of codes. Disassociation ([Loukides2014]) groups the
// records into clusters and cuts each cluster vertically:
//
//   - a record chunk holds, for a set of codes, the sub-records (projections
//     of the cluster's records on these codes) with their multiplicity;
//   - the item chunk holds the rest of the codes, without any count;
//   - a shared chunk holds sub-records of several clusters, its scope.
//
// Which sub-records of different chunks belong to one record is not said.
// Nothing here refers to a record, to an original order, or to the algorithm
// that made the form: what is in a [Form] may be shown to everybody. Chunks
// are histograms (distinct sub-records with counts, in code order), so they
// have no order that could tell anything.
//
// # What the form does not promise
//
// Guarantee 1 (k^m-anonymity, see package verify) is about finding a record
// from at most m of its codes. Beyond it:
//
//   - A reader who knows the algorithm knows that a code in an item chunk
//     occurs fewer than k times there, and that each cluster in the scope of a
//     scoped chunk holds its code between 1 and k-1 times: fewer candidates
//     than k. The guarantee counts readings of the form as any combination of
//     sub-records with any use of the item chunks.
//   - Where a code of a chunk never occurs without another one, it gives the
//     other away ([Barakat2016], [Awad2019]): see [Form.Covered].
//   - Attackers who combine several records, or know more than m codes of one,
//     are out of scope ([Loukides2014] §7.2).
//   - A code that occurs in one cluster only tells the cluster.
//   - Two forms of overlapping data can be intersected: publish once and
//     answer everything from it.
package published
