package credentials

import "strings"

// maskMobiles replaces mainland mobile numbers: 1[3-9] and nine digits more,
// after +86, 86 or 0086 or without, in one piece or grouped 3-4-4 by spaces or
// hyphens. Longer runs of digits (ids, times), decimals and hexadecimal words
// (hashes, UUIDs) are something else and stay.
func maskMobiles(text string) string {
	var out strings.Builder
	kept := 0 // text before it is in out
	for i := 0; i < len(text); {
		if !digit(text[i]) {
			i += stride(text[i:])
			continue
		}
		start, end := i, mobileEnd(text, i)
		if end == 0 || !bounded(text, start, end) {
			i = digitsEnd(text, i)
			continue
		}
		out.WriteString(text[kept:start])
		if bareNumber(text, start, end) {
			out.WriteByte('0') // a number in JSON must stay one
		} else {
			out.WriteString(mask)
		}
		kept, i = end, end
	}
	if kept == 0 {
		return text
	}
	out.WriteString(text[kept:])
	return out.String()
}

// stride is the length of what begins text: one byte, or an escape of JSON,
// whose digits are part of no number.
func stride(text string) int {
	switch {
	case strings.HasPrefix(text, `\u`):
		return min(6, len(text))
	case strings.HasPrefix(text, `\\`):
		return 2
	}
	return 1
}

// mobileEnd gives the end of the number that begins at i, with its country code
// if it has one; 0 when none begins there.
func mobileEnd(text string, i int) int {
	for _, code := range []string{"", "86", "0086"} {
		rest, ok := strings.CutPrefix(text[i:], code)
		if !ok {
			continue
		}
		at := len(text) - len(rest)
		if code != "" {
			at = separator(text, at)
		}
		if end := local(text, at); end > 0 {
			return end
		}
	}
	return 0
}

// local gives the end of the eleven digits that begin at i, or 0.
func local(text string, i int) int {
	for _, group := range []int{3, 4, 4} {
		if group == 3 {
			if i+3 > len(text) || text[i] != '1' || text[i+1] < '3' || text[i+1] > '9' {
				return 0
			}
		} else {
			i = separator(text, i)
		}
		for range group {
			if i >= len(text) || !digit(text[i]) {
				return 0
			}
			i++
		}
	}
	return i
}

func separator(text string, i int) int {
	if i < len(text) && (text[i] == ' ' || text[i] == '-') {
		return i + 1
	}
	return i
}

// longestHash bounds the look around a candidate, so that a line of nothing but
// digits and letters costs no more than any other.
const longestHash = 128

// bounded tells that the candidate is not a piece of something longer.
func bounded(text string, start, end int) bool {
	before, after := start, end
	for before > 0 && start-before < longestHash && alnum(text[before-1]) {
		before--
	}
	before = pastEscape(text, before, start)
	for after < len(text) && after-end < longestHash && alnum(text[after]) {
		after++
	}
	if after > end && digit(text[end]) || before < start && digit(text[start-1]) {
		return false
	}
	around := text[before:start] + text[end:after]
	if around != "" && strings.Trim(around, "0123456789abcdefABCDEF") == "" {
		return false // a hash
	}
	decimal := before == start && start > 1 && text[start-1] == '.' && digit(text[start-2]) ||
		after == end && end+1 < len(text) && text[end] == '.' && digit(text[end+1])
	return !decimal
}

// pastEscape moves the beginning of the word behind an escape of JSON (\n,
// \u0026): its letters and digits are no part of the word.
func pastEscape(text string, before, start int) int {
	if before == 0 || text[before-1] != '\\' || before == start {
		return before
	}
	switch text[before] {
	case 'n', 'r', 't', 'b', 'f':
		return before + 1
	case 'u':
		return min(before+5, start)
	}
	return before
}

// bareNumber tells that the candidate is a value of JSON and not part of a
// string, as far as its neighbours show.
func bareNumber(text string, start, end int) bool {
	if digitsEnd(text, start) != end {
		return false // grouped
	}
	before := strings.TrimRight(strings.TrimSuffix(text[max(0, start-8):start], "-"), " \t\n\r")
	after := strings.TrimLeft(text[end:min(end+8, len(text))], " \t\n\r")
	opens := strings.HasSuffix(before, `":`) || strings.HasSuffix(before, "[") || strings.HasSuffix(before, ",")
	return opens && after != "" && strings.IndexByte(",}]", after[0]) >= 0
}

func digitsEnd(text string, i int) int {
	for i < len(text) && digit(text[i]) {
		i++
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func alnum(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
