package mirror

import (
	"errors"
	"fmt"
)

// Difference is what a merge of a full pass would do to the mirror.
type Difference struct {
	Inserted   int64 `json:"inserted"`   // ids that the mirror does not know, tombstones among them
	Updated    int64 `json:"updated"`    // another record; live stays live and deleted stays deleted
	Revived    int64 `json:"revived"`    // deleted in the mirror, live in the pass
	Tombstoned int64 `json:"tombstoned"` // live in the mirror, a tombstone in the pass
	Absent     int64 `json:"absent"`     // live in the mirror, not in the pass
	Unchanged  int64 `json:"unchanged"`
	Live       int64 `json:"live"`      // live rows of the mirror now
	Explained  int64 `json:"explained"` // left out of the counts above: the next increment brings these ids
	// Samples are at most ten ids of each kind ("inserted", "updated", …), sorted.
	Samples map[string][]string `json:"samples"`
	// Fields are the top-level fields that differ among the updated rows, and in
	// how many of them; at most 10,000 rows are looked at and 100 fields named.
	Fields map[string]int64 `json:"fields"`
}

// Deletes is the number of live rows that a merge would mark as deleted.
func (d Difference) Deletes() int64 { return d.Tombstoned + d.Absent }

// Equal reports whether a merge would do nothing.
func (d Difference) Equal() bool { return d.changes() == 0 }

func (d Difference) changes() int64 { return d.Inserted + d.Updated + d.Revived + d.Deletes() }

// Ruling says how many deletions a merge may bring.
type Ruling struct {
	MaxDeleteRatio float64 // of the live rows; more is held when there are at least 100
	AcceptDeletes  bool    // a person has looked at the held result
	WithoutDeletes bool    // and wants all of it but the deletions: those rows stay as they are
}

// fuseFloor is the number of live rows below which deletions are never held.
const fuseFloor = 100

// Holds tells whether a merge with this difference would be held. It judges by the
// quotient, which for ratios as people write them rounds to
// the same number as their text: 29 of 100 is not more than 0.29.
func (r Ruling) Holds(d Difference) bool {
	return !r.AcceptDeletes && !r.WithoutDeletes && d.Live >= fuseFloor && float64(d.Deletes())/float64(d.Live) > r.MaxDeleteRatio
}

// FuseError means that the deletion fuse holds a pass: nothing changed for readers.
type FuseError struct {
	Resource   string
	Difference Difference
	Ratio      float64 // that would have been allowed
}

func (e *FuseError) Error() string {
	return fmt.Sprintf("mirror: merge %s: held: %d of %d live rows would be marked as deleted, more than the ratio %g allows",
		e.Resource, e.Difference.Deletes(), e.Difference.Live, e.Ratio)
}

// spoken reports whether err needs no words of ours any more.
func spoken(err error) bool {
	var (
		own  *Error
		held *HeldError
		fuse *FuseError
	)
	return errors.As(err, &own) || errors.As(err, &held) || errors.As(err, &fuse) || errors.Is(err, ErrStagingLost)
}
