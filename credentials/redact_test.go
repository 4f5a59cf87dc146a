package credentials_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

const canaryPassword = `c4n4ry "p&ss/w\rd<汉>@:%`

func TestShapesAreRedacted(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"token":              {"got xqak-Ab_9-z.", "got [redacted]"},
		"key glued to text":  {"key=xqok-Ab9,x", "key=[redacted],x"},
		"prefix alone stays": {"it begins with xqok- or xqak-, see", "it begins with xqok- or xqak-, see"},
		"store token":        {"hvs.CAESIJlU9abc used", "[redacted] used"},
		"bearer":             {"authorization: bearer abcdefgh==", "authorization: bearer [redacted]"},
		"basic":              {`{"Authorization":["Basic dTpwdw=="]}`, `{"Authorization":["Basic [redacted]"]}`},
		"address":            {"dial postgres://u:p@w/d@h:5432/db?x=1 failed", "dial postgres://u:[redacted]@h:5432/db?x=1 failed"},
		"address, no user":   {"redis://:secret@h", "redis://:[redacted]@h"},
		"address, no secret": {"https://host:8080/path user@mail", "https://host:8080/path user@mail"},
		"dsn field":          {"host=h PASSWORD = abc dbname=d", "host=h PASSWORD = [redacted] dbname=d"},
		"dsn field, quoted":  {"password='a b' host=h", "password=[redacted] host=h"},
		"session header":     {"Mcp-Session-Id: 1f-2e", "Mcp-Session-Id: [redacted]"},
		"session in JSON":    {`{"mcp-session-id":["1f-2e"],"a":1}`, `{"mcp-session-id":["[redacted]"],"a":1}`},
		"session in text":    {`{"msg":"map[Mcp-Session-Id:[1f-2e] Host:[h]]"}`, `{"msg":"map[Mcp-Session-Id:[[redacted]] Host:[h]]"}`},
		"session, escaped":   {`{"m":"{\"Mcp-Session-Id\":\"1f\"}"}`, `{"m":"{\"Mcp-Session-Id\":\"[redacted]\"}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := credentials.NewRedactor().String(test.in); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMobileNumbersAreRedacted(t *testing.T) {
	for _, in := range []string{
		"#", "tel #", "tel:#,next", "tel#", "mobile#", "手机#号", "# #", "#,#", "(#)", "#.", "-#", "_#_", "#x", `"#"`, `a\n#`, `a\u003c#`, `a\u0026#`, `\t#\n`, `\b#`, `\f#`,
	} {
		for _, number := range []string{
			"13800138000", "19912345678", "138 0013 8000", "138-0013-8000", "+8613800138000", "+86 13800138000",
			"86-138-0013-8000", "8613800138000", "008613800138000", "0086 138 0013 8000",
		} {
			text := strings.ReplaceAll(in, "#", number)
			got := credentials.NewRedactor().String(text)
			want := strings.ReplaceAll(strings.ReplaceAll(in, "#", "[redacted]"), "+[", "[")
			got = strings.ReplaceAll(got, "+[", "[")
			if got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		}
	}
}

func TestOtherNumbersSurvive(t *testing.T) {
	for _, in := range []string{
		"1733022300000", "1733022300", "1380013800012345678", "12345678901", "11012345678", "0.13800138000", "13800138000.50",
		"550e8400-e29b-41d4-a716-138001380001", "13800138-0013-8000-a716-446655440000", "a13800138000f", "13800138000abcdef",
		"sha256:9f13800138000aa01", "2026-11-30T03:02:01.138001380Z", "138001380001", "1380013800", "138-00138-000", "138  0013 8000",
		"86 1733022300000", "r_12", "1 2 3",
	} {
		if got := credentials.NewRedactor().String(in); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestBareNumberStaysJSON(t *testing.T) {
	in := `{"a":13800138000,"b":[13800138000,-13800138000],"c":{"d": 13800138000}}`
	got := credentials.NewRedactor().String(in)
	if want := `{"a":0,"b":[0,-0],"c":{"d": 0}}`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestKnownValuesAreFoundInEveryWriting(t *testing.T) {
	r := credentials.NewRedactor()
	r.Add(canaryPassword, "c4n4ry", "", "ab")
	inner, _ := json.Marshal(canaryPassword)
	twice, _ := json.Marshal(string(inner))
	for name, text := range map[string]string{
		"as it is":      canaryPassword,
		"quoted":        fmt.Sprintf("%q", canaryPassword),
		"JSON":          string(inner),
		"JSON in JSON":  string(twice),
		"query":         "?p=" + url.QueryEscape(canaryPassword),
		"path":          url.PathEscape(canaryPassword),
		"user info":     url.UserPassword("u", canaryPassword).String(),
		"inside a word": "x" + canaryPassword + "x",
	} {
		t.Run(name, func(t *testing.T) {
			got := r.String(text)
			assertClean(t, got)
			if strings.Contains(got, "汉") || strings.Contains(got, "%E6") || strings.Contains(got, "ss") {
				t.Errorf("a piece is left: %s", got)
			}
		})
	}
	if got := r.String("ab cabbage"); got != "ab cabbage" {
		t.Errorf("short values mask text: %s", got)
	}
}

// holder hides a secret where only the finished line shows it.
type holder struct {
	Password string
	Mobile   int64
	nested   error
}

func (h holder) String() string { return h.Password }

func (h holder) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("password", h.Password)
	return nil
}

func TestNoFieldOfALogLineLeaks(t *testing.T) {
	r := credentials.NewRedactor()
	r.Add(canaryPassword)
	bad := &url.Error{Op: "Post", URL: "https://x.example", Err: fmt.Errorf("%s %s 13800138000", canaryKey, canaryPassword)}
	it := holder{Password: canaryPassword, Mobile: 13800138000, nested: bad}
	for name, inner := range map[string]zapcore.Encoder{
		"json":    zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()),
		"console": zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			core := zapcore.NewCore(r.Encoder(inner), zapcore.AddSync(&out), zap.DebugLevel)
			log := zap.New(core, zap.AddStacktrace(zap.InfoLevel)).With(zap.String("with", canaryToken)).Named(canaryKey)
			log.Info(canaryPassword+" 13800138000", zap.Error(bad), zap.Errors("all", []error{bad, errors.Join(bad, it.nested)}),
				zap.Any("any", it), zap.Reflect("reflect", map[string]any{"mobile": int64(13800138000), canaryToken: it}),
				zap.Stringer("stringer", it), zap.Object("object", it), zap.Inline(it), zap.Dict("dict", zap.String("x", canaryPassword)),
				zap.ByteString("bytes", []byte(canaryPassword)), zap.Strings("list", []string{canaryToken, "+86 138-0013-8000"}),
				zap.Int64("mobile", 13800138000), zap.Uint64s("mobiles", []uint64{13800138000}), zap.Namespace("ns"), zap.String("url", "?p="+url.QueryEscape(canaryPassword)))
			log.Sugar().Debugf("%+v", it)
			assertClean(t, out.String())
			if !strings.Contains(out.String(), "redact_test.go") {
				t.Error("the stack is lost")
			}
			if name == "json" {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("not JSON any more: %s", line)
					}
				}
			}
		})
	}
}

func TestCleanLineIsNotTouched(t *testing.T) {
	var plain, wrapped bytes.Buffer
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = ""
	for out, encoder := range map[*bytes.Buffer]zapcore.Encoder{
		&plain:   zapcore.NewJSONEncoder(config),
		&wrapped: credentials.NewRedactor().Encoder(zapcore.NewJSONEncoder(config)),
	} {
		zap.New(zapcore.NewCore(encoder, zapcore.AddSync(out), zap.InfoLevel)).With(zap.Int("a", 1)).
			Info("page committed", zap.String("request_id", "550e8400-e29b-41d4-a716-446655440000"), zap.Int64("id", 1380013800012345678))
	}
	if plain.String() != wrapped.String() {
		t.Errorf("%s became %s", plain.String(), wrapped.String())
	}
}

func TestWriterScrubsWholeLines(t *testing.T) {
	var out bytes.Buffer
	w := credentials.NewRedactor().Writer(&out)
	for _, piece := range []string{"a 1380", "0138000 b\nnext xq", "ak-CANARY", "\rlast 138001"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := out.String(), "a [redacted] b\nnext [redacted]\r"; got != want {
		t.Errorf("before the end: %q", got)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "\rlast 138001") {
		t.Errorf("the rest is lost: %q", out.String())
	}
	out.Reset()
	_, _ = w.Write(bytes.Repeat([]byte("x"), 70<<10))
	if out.Len() == 0 {
		t.Error("a line without end is held for ever")
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("tel 13800138000", "c4n4ry-value")
	f.Add(`{"a":13800138000,"b":"\n+86 138-0013-8000"}`, canaryPassword)
	f.Add(`{"m":"password='a","b":"Mcp-Session-Id: 1\""}`, "password")
	f.Add("postgres://u:p@h 86\\u00e9", "0086138")
	f.Fuzz(func(t *testing.T, text, secret string) {
		r := credentials.NewRedactor()
		r.Add(secret)
		got := r.String(text + secret + text)
		if len(secret) >= 6 && !strings.Contains("[redacted]", secret) && !strings.Contains(text, secret) &&
			strings.Count(got, secret) > strings.Count(text+"[redacted]"+text, secret) {
			t.Errorf("%q is still in %q", secret, got)
		}
		if line := strings.HasPrefix(text, `{"`); line && json.Valid([]byte(text)) && !json.Valid([]byte(credentials.NewRedactor().String(text))) {
			t.Errorf("JSON broken: %s", text)
		}
	})
}

func BenchmarkRedactor(b *testing.B) {
	r := credentials.NewRedactor()
	r.Add(canaryPassword, "another secret", canaryToken)
	clean := `{"level":"info","ts":"2026-11-30T03:02:01.138Z","msg":"page committed","resource":"contracts","run":42,"page":17,"records":200,"request_id":"550e8400-e29b-41d4-a716-446655440000","id":1380013800012345678,"took":0.0213}` + "\n"
	for name, line := range map[string]string{
		"clean line":  clean,
		"with errors": strings.Replace(clean, "page committed", "post https://u:p@h: Bearer xqak-abcdef for 13800138000", 1),
		"64 KiB":      strings.Repeat(clean, (64<<10)/len(clean)),
		"all digits":  strings.Repeat("13800138000x", (64<<10)/12),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				r.String(line)
			}
		})
	}
}
