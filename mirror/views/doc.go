// Package views makes what readers see beside a resource's table: its views with
// typed columns, and the indexes on them.
//
//	path.go    where in a record a column's value is
//	column.go  columns and how they are checked
//	render.go  their SQL: the views live, all, masked and misfits
//	apply.go   bringing the views of a database to a definition, grants kept
//	unfilled.go columns whose paths lead nowhere
//	index.go   expression indexes, built without blocking anybody
//	suggest.go columns that a sample of records suggests
//	declare.go columns that a JSON Schema declares
//
// What may not live here: anything that changes rows, or that is needed to keep
// the mirror: a sync works without these views.
//
// Invariants:
//
//  1. No value fails a view: what does not fit its column is null there, and a
//     line of the resource's misfits view.
//  2. Views change in one transaction with the note of what they were made from.
//     Who had a right on a view has it afterwards.
//  3. A view of somebody else's that stands on one of ours is never dropped.
package views
