package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// logger writes to standard error through the redactor: no secret and no
// mobile number gets out, whatever a message or an error quotes.
func (p *program) logger(cfg *config.Config, w io.Writer, level zapcore.LevelEnabler) *zap.Logger {
	ec := zap.NewProductionEncoderConfig()
	ec.EncodeTime = zapcore.RFC3339TimeEncoder
	ec.EncodeDuration = zapcore.StringDurationEncoder
	ec.TimeKey, ec.MessageKey = "time", "message"
	var enc zapcore.Encoder
	if cfg.Log.Format == "json" {
		enc = zapcore.NewJSONEncoder(ec)
	} else {
		ec.EncodeLevel = zapcore.CapitalLevelEncoder
		enc = zapcore.NewConsoleEncoder(ec)
	}
	core := zapcore.NewCore(p.redactor.Encoder(enc), zapcore.Lock(zapcore.AddSync(w)), level)
	return zap.New(core)
}

// level is the least severe level that is logged.
func (p *program) level(cfg *config.Config) zapcore.Level {
	level, err := zapcore.ParseLevel(cfg.Log.Level)
	switch {
	case err == nil:
		return level
	case terminal(p.errOut):
		return zapcore.WarnLevel // auto: a person sees the progress line and the result instead
	default:
		return zapcore.InfoLevel
	}
}
