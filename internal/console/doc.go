// Package console is the web page on which administrators see what was asked,
// what was risky and what was given. A request comes through the guards in
// server.go, its session is found in session.go, and a handler reads views of
// the catalog over a read-only connection.
//
// The page shows no protected value: records hold none, literals are removed
// from statements again where the log keeps them, and of hierarchies only what
// the policy itself says and labels that cover several values.
//
// A draft of a policy is the exception: it has values of tables that are not protected yet, and
// that the administrator's own role may read.
package console
