package remotetest

import (
	"encoding/json"
	"time"
)

// RequestIDPlace says where an answer carries its request_id.
type RequestIDPlace string

// The places of a request_id; the contract shows the first.
const (
	RequestIDEnvelope RequestIDPlace = "envelope"
	RequestIDData     RequestIDPlace = "data"
	RequestIDMeta     RequestIDPlace = "_meta"
	RequestIDHeader   RequestIDPlace = "X-Request-Id"
	RequestIDAbsent   RequestIDPlace = "absent"
)

// DeletedAt says what a live record has as deleted_at.
type DeletedAt string

// The forms of a live record's deleted_at.
const (
	DeletedAtNull   DeletedAt = "null"
	DeletedAtEmpty  DeletedAt = "empty"
	DeletedAtAbsent DeletedAt = "absent"
)

// SSEForm says how an answer is cut into lines. All of it is legal SSE, but for
// NoFinalBlank, which servers do all the same.
type SSEForm struct {
	CRLF              bool
	BOM               bool
	NoSpace           bool // data:{…}
	NoEventName       bool
	NoFinalBlank      bool // the stream ends right after the last data line
	IDs               bool // id: and retry: lines
	KeepAlive         bool // comments before and between
	SeveralDataLines  bool
	NotificationFirst bool // an event with a notification before the answer
	RequestFirst      bool // an event with a ping of the server before the answer
}

// Variants are the things that the contract leaves open. The zero value is a
// plain reading of it. Those marked "stored" work on records that are written
// after they are set.
type Variants struct {
	ListName         string // of the records in data; empty: records; {resource} is replaced
	RequestID        RequestIDPlace
	SSE              SSEForm
	JSONAnswer       bool // application/json in place of SSE
	V1Always         bool // old shape whatever the header says
	AbsentNulls      bool // leave next_cursor and next_sync_token out rather than null
	NoticeInEnvelope bool
	ContentJSON      bool // content repeats the structured content as text
	OmitTombstones   bool // a full pass brings live records only

	LiveDeletedAt  DeletedAt // stored
	StringIDs      bool      // stored
	StringVersions bool      // stored
	BareTombstones bool      // stored: a tombstone has no fields
	TimeLayout     string    // stored; empty: RFC 3339 with milliseconds, +08:00

	Errors          Place // of an error of a tool; empty: ResultNested
	AuthErrors      Place // of a refused token; empty: HTTPTop
	LostSession400  bool  // 400 that speaks of the session in place of 404
	ProtocolVersion string
	EmptyLists      int  // so many tools/list of each session come back empty
	EmptyListBody   bool // they are a body without an event in place of an empty list
	ToolsPerPage    int  // 0: all
	// OutputSchemas are what tools/list offers by tool; the contract speaks of the
	// schemas of arguments alone.
	OutputSchemas map[string]json.RawMessage
}

// Vary changes the variants from the next request on.
func (s *Server) Vary(f func(*Variants)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.variants)
}

func (v Variants) timeText(ms int64) string {
	return time.UnixMilli(ms).In(shanghai()).Format(orString(v.TimeLayout, "2006-01-02T15:04:05.000Z07:00"))
}
