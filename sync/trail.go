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

// trail remembers what a round has passed, in bounded memory: the cursors, by
// hash, and the record ids, in a Bloom filter. It lives as long as the process
// works on the round; after a crash it starts anew and a circle is found one
// turn later.
type trail struct {
	seed    maphash.Seed
	cursors map[uint64]struct{}
	ids     *bloom.BloomFilter
	idle    int // pages in a row that brought no new id
}

func newTrail() trail {
	return trail{seed: maphash.MakeSeed(), cursors: map[uint64]struct{}{}}
}

// visited tells whether the round has already asked with that cursor.
func (t trail) visited(cursor string) bool {
	_, ok := t.cursors[maphash.String(t.seed, cursor)]
	return ok
}

// pass records a page that was asked for with cursor and brought ids.
func (t *trail) pass(cursor string, ids iter.Seq[string]) {
	if cursor != "" {
		t.cursors[maphash.String(t.seed, cursor)] = struct{}{}
	}
	if t.ids == nil {
		t.ids = bloom.New(trailBits, trailHashes)
	}
	fresh := false
	for id := range ids {
		fresh = !t.ids.TestAndAddString(id) || fresh
	}
	if fresh {
		t.idle = 0
	} else {
		t.idle++
	}
}
