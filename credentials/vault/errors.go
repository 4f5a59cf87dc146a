package vault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"

	"github.com/xiaoqu-sync/xiaoqu-sync/credentials"
)

// op is how this room signs its errors.
const op = "vault"

// longestQuote bounds what is quoted of Vault's own words, in bytes.
const longestQuote = 200

// wrong is a mistake in the configuration.
func wrong(format string, args ...any) *credentials.Error {
	return &credentials.Error{Kind: credentials.BadKey, Op: op, Message: fmt.Sprintf(format, args...)}
}

func refusal(format string, args ...any) *credentials.Error {
	return &credentials.Error{Kind: credentials.StoreRefused, Op: op, Message: fmt.Sprintf(format, args...)}
}

func kindOf(err error) credentials.Kind {
	var e *credentials.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func down(err error) bool    { return kindOf(err) == credentials.StoreDown }
func refused(err error) bool { return kindOf(err) == credentials.StoreRefused }

// fail judges an error of the library; what says what was asked for. A deadline of
// our own leaves no context error in the chain: that would mean that the caller's
// time is over.
func (c *Client) fail(what string, err error) error {
	var (
		answer *api.ResponseError
		ours   *credentials.Error
		outer  *url.Error
	)
	e := &credentials.Error{Kind: credentials.StoreDown, Op: op}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Message = fmt.Sprintf("Vault at %s gave no answer within %s", c.o.Address, requestTimeout)
	case errors.Is(err, api.ErrSecretNotFound):
		return refusal("there is nothing at %s in Vault at %s", what, c.o.Address)
	case errors.As(err, &answer):
		c.answered(e, what, answer)
	default:
		if errors.As(err, &outer) {
			err = outer.Err // the address is said once
		}
		e.Message, e.Err = fmt.Sprintf("Vault at %s is not reachable", c.o.Address), credentials.Scrub(err)
	}
	return e
}

// answered names an answer that is no success. Vault's words are quoted: they say
// "sealed" or "permission denied" and hold no value of a secret; what looks like
// one is taken out all the same.
func (c *Client) answered(e *credentials.Error, what string, answer *api.ResponseError) {
	words := strings.Join(strings.Fields(strings.Join(answer.Errors, "; ")), " ")
	if answer.RawError { // a gateway's page
		words = ""
	}
	if words = credentials.Scrub(errors.New(words)).Error(); len(words) > longestQuote {
		words = strings.ToValidUTF8(words[:longestQuote], "") + "…"
	}
	said := fmt.Sprintf("HTTP %d", answer.StatusCode)
	if words != "" {
		said += ": " + words
	}
	e.Status = answer.StatusCode
	switch status := answer.StatusCode; {
	case status == http.StatusPreconditionFailed, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		e.Message = fmt.Sprintf("Vault at %s is not ready (%s)", c.o.Address, said)
	case status == http.StatusNotFound:
		e.Kind, e.Message = credentials.StoreRefused, fmt.Sprintf("there is nothing at %s in Vault at %s (%s)", what, c.o.Address, said)
	default:
		e.Kind, e.Message = credentials.StoreRefused, fmt.Sprintf("Vault at %s refuses %s (%s)", c.o.Address, what, said)
	}
}

// waited adds to the last failure how long it was waited for.
func waited(err error, d time.Duration) error {
	var e *credentials.Error
	if !errors.As(err, &e) || e.Kind != credentials.StoreDown {
		return err
	}
	after := *e
	after.Message += fmt.Sprintf(", after waiting %s", d.Round(time.Second))
	return &after
}
