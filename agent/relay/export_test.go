package relay

// What the protocol's own examples are recomputed with.
var (
	Sign   = sign
	Signed = signed
	Judge  = judge
	Words  = words
)
