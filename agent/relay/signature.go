package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// signatureHeader carries the signature of a body, both ways (RSP §3).
const signatureHeader = "X-Relay-Signature"

const (
	signatureWindow = 300 // seconds to either side
	maxSignatures   = 8   // v1= in one header; a rotation needs two
)

// sign makes the header for a body: t and one v1.
func sign(secret []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	return "t=" + t + ",v1=" + hex.EncodeToString(digest(secret, t, body))
}

func digest(secret []byte, t string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// unsigned is "" when one of the header's signatures is of one of the secrets, and
// fresh; else what is wrong, for the log alone. Every pair is compared, so that the
// time tells nothing.
func unsigned(header string, body []byte, secrets [][]byte, now time.Time) string {
	t, given, ok := readSignature(header)
	if !ok {
		return "the signature is missing or malformed"
	}
	at, err := strconv.ParseInt(t, 10, 64)
	if err != nil || now.Unix()-at > signatureWindow || at-now.Unix() > signatureWindow {
		return "the signature is too old, or a clock is wrong"
	}
	right := false
	for _, secret := range secrets {
		if len(secret) == 0 {
			continue // everybody can sign with nothing
		}
		want := digest(secret, t, body)
		for _, v := range given {
			right = hmac.Equal(want, v) || right
		}
	}
	if !right {
		return "the signature is of another secret or another body"
	}
	return ""
}

// readSignature takes a header apart. Parts of other names are for later versions.
func readSignature(header string) (t string, given [][]byte, ok bool) {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if t != "" || !digits(value) {
				return "", nil, false
			}
			t = value
		case "v1":
			v, err := hex.DecodeString(value)
			if err != nil || len(v) != sha256.Size {
				continue
			}
			if given = append(given, v); len(given) > maxSignatures {
				return "", nil, false
			}
		}
	}
	return t, given, t != "" && len(given) > 0
}

// digits keeps the text that is signed one with the number that is judged: no
// sign, no space, no more than a time can have.
func digits(s string) bool {
	if s == "" || len(s) > 12 {
		return false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
