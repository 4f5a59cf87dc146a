package relay

import "time"

// What the protocol's own examples are recomputed with.
var (
	Sign  = sign
	Judge = judge
	Words = words
)

// Signed reports whether a signature is taken.
func Signed(header string, body []byte, secrets [][]byte, now time.Time) bool {
	return unsigned(header, body, secrets, now) == ""
}
