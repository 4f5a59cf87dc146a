package agent

// Check is the check of an input by itself.
func (c *Capability) Check(text []byte) *Failure { return c.input.check(text) }

// Documents are those of a report.
func (r Report) Documents(kind JobKind) []Document { return r.documents(kind) }
