package mirror

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/iotest"
	"time"
)

// However COPY's reader is asked, it gives the same bytes and then ends.
func TestCopyReaderIsAReader(t *testing.T) {
	b := NewBatch([]json.RawMessage{[]byte(`{"id":"a","deleted_at":"2026-09-03"}`), []byte(`{"id":"b","version":""}`)}, time.UTC)
	read := func() []byte {
		all, err := io.ReadAll(newCopyReader(b.rows, (&staging{seq: 7, snapshot: "snap"}).encode))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := read()
	if err := iotest.TestReader(newCopyReader(b.rows, (&staging{seq: 7, snapshot: "snap"}).encode), want); err != nil {
		t.Error(err)
	}
	small, err := io.ReadAll(iotest.OneByteReader(newCopyReader(b.rows, (&staging{seq: 7, snapshot: "snap"}).encode)))
	if err != nil || !bytes.Equal(small, want) {
		t.Errorf("byte by byte: %x, %v", small, err)
	}
}

func TestCopyReaderOfNothing(t *testing.T) {
	all, err := io.ReadAll(newCopyReader(nil, new(staging).encode))
	if err != nil || !bytes.Equal(all, []byte(copySignature+"\xff\xff")) {
		t.Errorf("%x, %v", all, err)
	}
}
