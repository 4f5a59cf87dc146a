package sync

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was caught at a goroutine's root, so that one
// resource's bug does not take the process and the other resources with it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic without its stack, which goes to the log alone.
func (p *PanicError) Error() string { return fmt.Sprintf("sync: panic: %v", p.Value) }

// guard runs f and turns a panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
