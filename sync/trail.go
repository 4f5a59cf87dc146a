package sync

import (
	"hash/maphash"
	"iter"

	"github.com/bits-and-blooms/bloom/v3"
)

const (
	// maxIdlePages bounds how many pages in a row may bring nothing new.
	// Within one stable snapshot a single such page is already odd.
	maxIdlePages = 100
	// The filter takes 2 MiB and stays below 0.3 % false "seen" answers up to
	// a million records; a false answer only makes one record look old, and a
	// page counts as idle only when all of its records do.
	trailBits, trailHashes = 1 << 24, 4
)

// trail remembers the cursors that a round has passed, by hash. It lives as
// long as the process works on the round; after a crash it starts anew and a
// circle is found one turn later.
type trail struct {
	seed    maphash.Seed
	cursors map[uint64]struct{}
}

func newTrail() trail {
	return trail{seed: maphash.MakeSeed(), cursors: map[uint64]struct{}{}}
}

// visited tells whether the round has already asked with that cursor.
func (t trail) visited(cursor string) bool {
	_, ok := t.cursors[maphash.String(t.seed, cursor)]
	return ok
}

// pass records the cursor that a page was asked for with.
func (t trail) pass(cursor string) {
	if cursor != "" {
		t.cursors[maphash.String(t.seed, cursor)] = struct{}{}
	}
}

// novelty tells whether a round's pages still bring anything new: it remembers
// the record ids, in a Bloom filter of bounded size.
type novelty struct {
	ids  *bloom.BloomFilter
	idle int // pages in a row that brought no new id
}

// meet records the ids of a page.
func (n *novelty) meet(ids iter.Seq[string]) {
	if n.ids == nil {
		n.ids = bloom.New(trailBits, trailHashes)
	}
	fresh := false
	for id := range ids {
		fresh = !n.ids.TestAndAddString(id) || fresh
	}
	if fresh {
		n.idle = 0
	} else {
		n.idle++
	}
}

// exhausted tells that nothing new is to be expected any more.
func (n *novelty) exhausted() bool { return n.idle > maxIdlePages }
