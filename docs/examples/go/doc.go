// Command go follows the changes of one resource of the mirror and prints them.
// It keeps its place in a table of its own, so that it can stop at any time.
//
//	DATABASE_URL=postgres://… go run ./docs/examples/go contracts
package main
