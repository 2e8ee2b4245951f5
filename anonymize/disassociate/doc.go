// Package disassociate publishes set-valued data, such as the diagnosis codes
// of patients, with k^m-anonymity: whoever knows up to m codes of a record
// finds at least k records that may be it. Codes are neither generalized nor
// suppressed; records are cut into sub-records whose connection is withheld
// ([Loukides2014], [Terrovitis2012]).
//
// In flows a [Dataset] and a [Config]; out flows a [Result]: the published
// form (package published) and, secret, the cluster of each record. The stages
// of [Disassociate], one file each:
//
//   - horpart.go groups similar records into clusters (HORPART), leaves.go
//     merges groups that are too small;
//   - verpart.go cuts each cluster into record chunks and an item chunk
//     (VERPART), kmcheck.go decides k^m-anonymity of a chunk, emptyrule.go
//     keeps a cluster without an item chunk free of empty records;
//   - scoped.go and joint.go move codes from item chunks into chunks shared by
//     several clusters (REFINE);
//   - publish.go makes the published form, and package verify checks it
//     against the original records before anybody sees it.
//
// What holds of every result:
//
//   - Guarantee 1 ([Loukides2014]): for each record r and each set S of at
//     most m of its codes there is a data set that the form can be read as in
//     which k records of r's cluster hold S, and no record is empty.
//   - Each code of each record is in exactly one chunk, or its code is in the
//     item chunk of the record's cluster.
//   - A sensitive code is in item chunks only, of clusters of at least
//     Config.Diversity records.
//
// The limits of the guarantee are listed in package published.
//
// Departures from [Loukides2014]: small clusters are merged; lines 15-17 of
// VERPART are read as the paper's example needs them; the second part of
// HORPART keeps the ignore set of its parent; scoped refinement is new. Each
// is explained where it is coded.
//
// The package is pure: no SQL, sockets or clock; randomness is handed in. The
// result depends on data, configuration and seed only, not on the number of
// processors.
package disassociate
