package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// readTime bounds what answers at once. It leaves a platform that waits three
// seconds its time for the way (RSP 1.0 §2).
const readTime = 2500 * time.Millisecond

// jobTime bounds a task, all attempts together. It is the longest that a platform
// takes (Xiaoya: 3600 seconds).
const jobTime = time.Hour

// Kinds of personal data, for Capability.Personal.
const (
	personalRecords = "records of the tenant: names, mobile numbers and what else they hold"
	personalIDs     = "ids of records"
)

// catalogue makes all capabilities for what is mirrored, switched on or not.
func (s *Service) catalogue() ([]*Capability, error) {
	all := slices.Concat(s.looks(), s.records(), s.jobs())
	for _, c := range all {
		var err error
		if c.input, err = compile(c.Input); err != nil {
			return nil, fmt.Errorf("agent: input schema of %s: %w", c.ID, err)
		}
		if c.output, err = compile(c.Output); err != nil {
			return nil, fmt.Errorf("agent: output schema of %s: %w", c.ID, err)
		}
	}
	return all, nil
}

// handle makes a capability's run of a function that takes its decoded input and
// gives the result's summary and data.
func handle[In any](f func(context.Context, In) (string, any, error)) func(context.Context, Call) (Result, error) {
	return func(ctx context.Context, call Call) (Result, error) {
		var in In
		if err := json.Unmarshal(call.Input, &in); err != nil {
			return Result{}, &Failure{Class: Invalid, Code: "invalid_input", Message: "the input cannot be read as its schema says"}
		}
		summary, data, err := f(ctx, in)
		if err != nil {
			return Result{}, err
		}
		text, err := json.Marshal(data)
		if err != nil {
			return Result{}, fmt.Errorf("agent: the answer has no JSON: %w", err)
		}
		return Result{Summary: summary, Data: text}, nil
	}
}

// resourceNames are the mirrored resources, in the order of their names.
func (s *Service) resourceNames() []string {
	names := make([]string, 0, len(s.options.Resources))
	for _, r := range s.options.Resources {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// chosen are the named resources, or all.
func (s *Service) chosen(names []string) []string {
	if len(names) == 0 {
		return s.resourceNames()
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *Service) oneResource() shape {
	return oneOf("A mirrored resource.", s.resourceNames()...)
}

func (s *Service) someResources() shape {
	l := list(s.oneResource(), len(s.options.Resources))
	l["description"] = "Mirrored resources; without it, all."
	l["minItems"] = 1
	l["uniqueItems"] = true
	return l
}

// columnTypes are the typed columns of all resources; a name that stands for two
// types in two resources is taken as text.
func (s *Service) columnNames() []string {
	var names []string
	for _, r := range s.options.Resources {
		for _, c := range r.Columns {
			names = append(names, c.Name)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}
