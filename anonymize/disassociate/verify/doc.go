// Package verify checks a published form against the records that it was made
// from, before anybody sees it. It knows the form (package published), the
// original records and which cluster each is in, and nothing else: no part of
// it is shared with the algorithm that made the form.
//
// The assumed attacker knows up to m codes of one record that is in the data,
// has the form, and reads it as any combination of sub-records with any use of
// the item chunks. What is checked is Guarantee 1 ([Loukides2014]): for
// each record r of a cluster P and each set S of at most m of its codes, some
// reading of the form without an empty record has k records of P that hold S.
// That is so if
//
//   - P has at least k records;
//   - in each record chunk, and each shared chunk with P in its scope, every
//     set of at most m codes of r in that chunk is in at least k sub-records
//     (the chunks are independent of each other, so k sub-records of each can
//     be given to the same k records);
//   - no code is in two places of P, so that what a sub-record of a shared
//     chunk holds cannot contradict P's own chunks;
//   - P has an item chunk, whose codes can fill any empty record, or its record
//     chunks have sub-records enough: at least |P| + k(min(m, chunks) - 1).
//
// Faithfulness is checked as well: each chunk holds exactly the projections of
// its records, and each code of each record is in one chunk or its cluster's
// item chunk; and the promise on sensitive codes.
//
// The tests compare with an enumeration of all readings of small forms, and
// feed forms that were broken on purpose.
package verify
