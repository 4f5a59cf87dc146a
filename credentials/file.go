package credentials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FileKey is the key in a file that something else keeps: a mounted secret, or a
// credential of systemd. The file is read anew whenever the key is asked for.
type FileKey struct {
	path   string // "" when there is none to be read
	reason string // why there is none
}

// FromFile reads the key from a file.
func FromFile(path string) *FileKey { return &FileKey{path: path} }

// FromSystemd reads the key from the credential that the unit's LoadCredential or
// SetCredentialEncrypted calls name. systemd says in $CREDENTIALS_DIRECTORY where
// it is.
func FromSystemd(lookup func(string) (string, bool), name string) *FileKey {
	dir, ok := lookup("CREDENTIALS_DIRECTORY")
	switch {
	case !ok || dir == "":
		return &FileKey{reason: "CREDENTIALS_DIRECTORY is not set: run the program as a systemd unit with LoadCredential=" + name + ":FILE"}
	case name != filepath.Base(name) || !filepath.IsLocal(name):
		return &FileKey{reason: "the credential's name is a path: give the name that stands before the colon in LoadCredential"}
	}
	return FromFile(filepath.Join(dir, name))
}

// Key gives the checked key, or an *Error of kind BadKey that says what is wrong
// with the file and never what it holds.
func (f *FileKey) Key(context.Context) (Secret, error) {
	key, _, err := f.read()
	return key, err
}

// Current is Key: a file numbers no versions.
func (f *FileKey) Current(ctx context.Context) (Secret, string, error) {
	key, err := f.Key(ctx)
	return key, "", err
}

// Place is the file's path.
func (f *FileKey) Place() string { return f.path }

// Note tells what had to be trimmed, and that others can read the file; "" when
// there is nothing to say.
func (f *FileKey) Note() string {
	_, note, err := f.read()
	if err != nil {
		return ""
	}
	return note
}

func (f *FileKey) read() (key Secret, note string, err error) {
	if f.path == "" {
		return Secret{}, "", badKey("%s", f.reason)
	}
	raw, note, err := ReadSecretFile(f.path)
	if err != nil {
		return Secret{}, "", badKey("%s", err)
	}
	key, trimmed, err := ParseKey(raw, f.path)
	if trimmed != "" && note != "" {
		trimmed += "; "
	}
	return key, trimmed + note, err
}

// ReadSecretFile reads a small file that holds a secret. The note, "" for none,
// warns when every user of the machine can read it. The error names the file and
// the reason.
func ReadSecretFile(path string) (content, note string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", "", unreadable(path, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", "", unreadable(path, err)
	}
	if mode := info.Mode().Perm(); mode&0o004 != 0 {
		note = fmt.Sprintf("%s can be read by every user of this machine (mode %04o): take that right away, chmod o-rwx", path, mode)
	}
	// A little more than the most, so that the check of the length speaks.
	raw, err := io.ReadAll(io.LimitReader(file, 4*maxSecret))
	if err != nil {
		return "", "", unreadable(path, err)
	}
	return strings.ToValidUTF8(string(raw), "\ufffd"), note, nil
}

func unreadable(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err // the path is said once
	}
	return fmt.Errorf("%s can't be read: %w", path, err)
}
