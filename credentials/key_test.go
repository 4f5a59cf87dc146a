package credentials_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

func env(value string) func(string) (string, bool) {
	return func(name string) (string, bool) { return value, name == "XIAOQU_OPEN_KEY" }
}

func TestKeyIsTrimmedAndNoted(t *testing.T) {
	for name, test := range map[string]struct{ raw, note string }{
		"as it should be":    {canaryKey, ""},
		"newline":            {canaryKey + "\n", "XIAOQU_OPEN_KEY: a newline around the key was trimmed"},
		"windows newline":    {canaryKey + "\r\n", "XIAOQU_OPEN_KEY: a newline around the key was trimmed"},
		"spaces":             {"  " + canaryKey + "\t", "XIAOQU_OPEN_KEY: spaces around the key was trimmed"},
		"byte order mark":    {"\ufeff" + canaryKey, "XIAOQU_OPEN_KEY: a byte order mark around the key was trimmed"},
		"mark after a space": {" \ufeff" + canaryKey + "\n", "XIAOQU_OPEN_KEY: a byte order mark and a newline and spaces around the key was trimmed"},
	} {
		t.Run(name, func(t *testing.T) {
			source := credentials.FromEnv(env(test.raw), "XIAOQU_OPEN_KEY")
			key, err := source.Key(t.Context())
			if err != nil || key.Reveal() != canaryKey {
				t.Fatalf("key %q, error %v", key.Reveal(), err)
			}
			if got := source.Note(); got != test.note {
				t.Errorf("note %q, want %q", got, test.note)
			}
		})
	}
}

func TestBadKeyIsRefusedByName(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"empty":             {"", "XIAOQU_OPEN_KEY is empty: set it to the service key"},
		"only white space":  {" \n\ufeff", "is empty"},
		"token":             {"xqak-CANARY", "holds an access token (xqak-) where the service key (xqok-) is wanted"},
		"other prefix":      {"CANARY-xqok-", "does not begin with xqok-"},
		"quotes":            {`"xqok-CANARY"`, "begins with a quotation mark"},
		"prefix alone":      {"xqok-", "cut short"},
		"NUL":               {"xqok-CANARY\x00z", "a control character (U+0000) at position 12"},
		"newline inside":    {"xqok-CANARY\nCANARY", "a control character (U+000A) at position 12"},
		"next line inside":  {"xqok-CANARY\u0085CANARY", "a control character (U+0085) at position 12"},
		"space inside":      {"xqok-CANARY CANARY", "a space at position 12"},
		"zero width space":  {"xqok-CANARY\u200bCANARY", "a character outside ASCII at position 12"},
		"full-width letter": {"xqok-CANARYＡ", "a character outside ASCII"},
		"invalid UTF-8":     {"xqok-CANARY\xff", "a character outside ASCII"},
		"too long":          {"xqok-" + strings.Repeat("CANARY", 1000), "longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			source := credentials.FromEnv(env(test.raw), "XIAOQU_OPEN_KEY")
			key, err := source.Key(t.Context())
			var failure *credentials.Error
			if !errors.As(err, &failure) || failure.Kind != credentials.BadKey || !key.IsZero() {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q lacks %q", err, test.want)
			}
			assertClean(t, err.Error())
			if note := source.Note(); note != "" {
				t.Errorf("a note on a bad key: %q", note)
			}
		})
	}
}

func TestMissingKeySaysHowToSetIt(t *testing.T) {
	_, err := credentials.FromEnv(env(canaryKey), "OTHER_NAME").Key(t.Context())
	if err == nil || !strings.Contains(err.Error(), "OTHER_NAME is not set: set it to the service key") {
		t.Errorf("got %v", err)
	}
}
