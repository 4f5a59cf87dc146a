package mirror

import (
	"bytes"
	"time"
)

const (
	maxTimeBytes = 64 // a longer text is no time
	minYear      = 1
	maxYear      = 9999
)

// ParseTime reads a text of the remote as a time, by the same rules as the typed
// columns of a record; loc is for a text that names no zone.
func ParseTime(text string, loc *time.Location) (time.Time, bool) {
	return parseText([]byte(text), loc)
}

// parseTime reads a JSON value as a time, cut to microseconds. It takes RFC 3339
// with the usual liberties (a space for the T, no seconds, a zone without colon or
// none at all, a date alone) and Unix seconds (9 or 10 digits) or milliseconds (13)
// as a number or a string. Whatever it does not know for certain is not a time: a
// null is better than another date. Of a text without a zone the zone is loc.
func parseTime(value []byte, loc *time.Location) (time.Time, bool) {
	if len(value) > 0 && len(value) <= maxTimeBytes && value[0] == '"' {
		value = []byte(textOf(value))
	}
	return parseText(value, loc)
}

// parseText reads what stands between a string's quotes, or a number.
func parseText(text []byte, loc *time.Location) (time.Time, bool) {
	if len(text) == 0 || len(text) > maxTimeBytes {
		return time.Time{}, false
	}
	t, ok := parseUnix(text)
	if !ok {
		p := timeParser{rest: text}
		t, ok = p.time(loc)
	}
	if year := t.UTC().Year(); !ok || year < minYear || year > maxYear {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// parseUnix takes digits with an optional fraction. Other lengths than 9, 10 and
// 13 are not guessed: 8, 12 and 14 digits are how dates are written without
// punctuation.
func parseUnix(text []byte) (time.Time, bool) {
	digits, fraction, dotted := bytes.Cut(text, []byte("."))
	if dotted && len(fraction) == 0 {
		return time.Time{}, false
	}
	whole, ok := number(digits)
	micro, good := microseconds(fraction)
	if !ok || !good {
		return time.Time{}, false
	}
	switch len(digits) {
	case 9, 10:
		return time.Unix(int64(whole), int64(micro)*1000), true
	case 13:
		return time.UnixMicro(int64(whole)*1000 + int64(micro/1000)), true
	}
	return time.Time{}, false
}

// number reads a text of digits only, at most 18 of them.
func number(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, len(text) > 0 && len(text) <= 18
}

// microseconds reads a fraction's digits and cuts what is finer; rounding could
// carry into the next second, hour, day.
func microseconds(digits []byte) (n int, ok bool) {
	for i := range max(6, len(digits)) {
		c := byte('0')
		if i < len(digits) {
			c = digits[i]
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		if i < 6 {
			n = n*10 + int(c-'0')
		}
	}
	return n, true
}

// timeParser eats a text from the left. After the first failure it fails for ever.
type timeParser struct {
	rest   []byte
	failed bool
}

func (p *timeParser) time(loc *time.Location) (time.Time, bool) {
	year, month, day := p.digits(4), p.after("-", 2), p.after("-", 2)
	if len(p.rest) == 0 {
		return p.build(civil{year, month, day, 0, 0, 0, 0}, loc)
	}
	if !p.skip("Tt ") {
		return time.Time{}, false
	}
	c := civil{year: year, month: month, day: day, hour: p.digits(2), minute: p.after(":", 2)}
	if p.next(":") {
		c.second = p.after(":", 2)
		if p.next(".,") {
			c.micro = p.fraction()
		}
	}
	return p.build(c, p.zone(loc))
}

// civil is a date and a time of day as written.
type civil struct{ year, month, day, hour, minute, second, micro int }

// build checks the ranges, which time.Date would carry over into another day.
// Two carries are meant by whoever writes them: 24:00 and a leap second.
func (p *timeParser) build(c civil, loc *time.Location) (time.Time, bool) {
	midnight := c.hour == 24 && c.minute == 0 && c.second == 0 && c.micro == 0
	leap := c.second == 60 && c.minute == 59
	switch {
	case p.failed, len(p.rest) > 0, c.year < minYear, c.month < 1, c.month > 12, c.day < 1,
		c.day > time.Date(c.year, time.Month(c.month)+1, 0, 0, 0, 0, 0, time.UTC).Day(),
		c.hour > 23 && !midnight, c.minute > 59, c.second > 59 && !leap:
		return time.Time{}, false
	}
	t := time.Date(c.year, time.Month(c.month), c.day, c.hour, c.minute, c.second, c.micro*1000, loc)
	// A clock that is put forward skips times; nobody knows which one was meant.
	if !midnight && !leap && (t.Hour() != c.hour || t.Minute() != c.minute) {
		return time.Time{}, false
	}
	return t, true
}

// zone reads Z, an offset with or without colon and minutes, or nothing.
func (p *timeParser) zone(loc *time.Location) *time.Location {
	if len(p.rest) > 1 && p.next(" ") {
		p.skip(" ")
	}
	switch {
	case len(p.rest) == 0:
		return loc
	case p.next("Zz"):
		p.skip("Zz")
		return time.UTC
	}
	sign := 1
	if p.next("-") {
		sign = -1
	}
	p.skip("+-")
	hours, minutes := p.digits(2), 0
	if p.next(":") {
		minutes = p.after(":", 2)
	} else if len(p.rest) > 0 {
		minutes = p.digits(2)
	}
	if hours > 15 || minutes > 59 {
		p.failed = true
	}
	return time.FixedZone("", sign*(hours*3600+minutes*60))
}

func (p *timeParser) next(set string) bool {
	return len(p.rest) > 0 && bytes.IndexByte([]byte(set), p.rest[0]) >= 0
}

func (p *timeParser) skip(set string) bool {
	if !p.next(set) {
		p.failed = true
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *timeParser) after(separator string, n int) int {
	p.skip(separator)
	return p.digits(n)
}

func (p *timeParser) digits(n int) int {
	if len(p.rest) < n {
		p.failed = true
		return 0
	}
	v, ok := number(p.rest[:n])
	p.failed = p.failed || !ok
	p.rest = p.rest[n:]
	return v
}

func (p *timeParser) fraction() int {
	p.skip(".,")
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	micro, ok := microseconds(p.rest[:end])
	p.failed = p.failed || !ok || end == 0
	p.rest = p.rest[end:]
	return micro
}
