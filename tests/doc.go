// Package tests runs Tailor from end to end: a throwaway PostgreSQL, the built
// binary, real clients. It sees only what a client sees; its checker computes
// what was disclosed from the answers and a direct connection, never from
// Tailor's own data structures.
package tests
