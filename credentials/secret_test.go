package credentials_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.yaml.in/yaml/v4"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

const canaryKey = "xqok-CANARY7key"

func TestSecretNeverPrints(t *testing.T) {
	type outer struct {
		Open   credentials.Secret
		hidden credentials.Secret
	}
	secret := credentials.NewSecret(canaryKey)
	wrapped := outer{Open: secret, hidden: secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%T"} {
		for name, value := range map[string]any{
			"value": secret, "pointer": &secret, "in a struct": wrapped, "behind a pointer": &wrapped,
			"in a slice": []credentials.Secret{secret}, "in a map": map[string]credentials.Secret{"k": secret},
		} {
			t.Run(verb+" "+name, func(t *testing.T) {
				assertClean(t, fmt.Sprintf(verb, value))
			})
		}
	}
	if got := fmt.Sprintf("%#v", secret); got != "[redacted]" {
		t.Errorf("%%#v gives %q", got)
	}
	assertClean(t, fmt.Sprint(wrapped.hidden))
}

func TestSecretNeverMarshals(t *testing.T) {
	secret := credentials.NewSecret(canaryKey)
	holder := struct {
		Key credentials.Secret `json:"key" yaml:"key"`
	}{secret}
	for name, marshal := range map[string]func(any) ([]byte, error){
		"json": json.Marshal, "yaml": yaml.Marshal, "xml": xml.Marshal,
	} {
		t.Run(name, func(t *testing.T) {
			text, err := marshal(&holder.Key)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "[redacted]") {
				t.Errorf("got %q", text)
			}
		})
	}
	text, err := yaml.Marshal(holder)
	if err != nil || !strings.Contains(string(text), "[redacted]") {
		t.Errorf("yaml of a struct: %q, %v", text, err)
	}
}

func TestSecretNeverLogs(t *testing.T) {
	secret := credentials.NewSecret(canaryKey)
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", secret)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", secret)
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&out), zap.DebugLevel))
	logger.Info("x", zap.Any("key", secret), zap.Reflect("k", secret), zap.Stringer("s", secret),
		zap.Error(fmt.Errorf("with %v: %w", secret, errors.ErrUnsupported)))
	logger.Sugar().Infof("%+v", secret)
	assertClean(t, out.String())
	if n := strings.Count(out.String(), "[redacted]"); n < 7 {
		t.Errorf("%d times redacted in %s", n, out.String())
	}
}

func TestSecretRevealsItself(t *testing.T) {
	secret := credentials.NewSecret(canaryKey)
	if secret.Reveal() != canaryKey || secret.IsZero() {
		t.Error("the value is lost")
	}
	var zero credentials.Secret
	if zero.Reveal() != "" || !zero.IsZero() || !credentials.NewSecret("").IsZero() {
		t.Error("the zero secret is not empty")
	}
}

// assertClean fails when a text holds a canary of this package's tests.
func assertClean(t *testing.T, text string) {
	t.Helper()
	for _, canary := range []string{"CANARY", "13800138000", "c4n4ry"} {
		if strings.Contains(text, canary) {
			t.Errorf("the text gives %s away: %.300s", canary, text)
		}
	}
}
