package main

import (
	"context"
	"time"
)

// contender is one of those that are measured in turns.
type contender struct {
	before func(context.Context) error // not measured; may be nil
	do     func(context.Context) error
}

// measures are a contender's, in the order of the turns: seconds of the clock, of
// this process's CPU, and of PostgreSQL's.
type measures struct{ wall, worker, server []float64 }

// turns lets everybody do the work n times, one after the other, so that what
// disturbs the machine disturbs all of them. A turn before that is not counted:
// it fills caches.
func (b *bench) turns(ctx context.Context, n int, all ...contender) ([]measures, error) {
	out := make([]measures, len(all))
	for turn := range n + 1 {
		for i, c := range all {
			if c.before != nil {
				if err := c.before(ctx); err != nil {
					return nil, err
				}
			}
			worker, server, began := ownCPU(), b.serverCPU(), time.Now()
			if err := c.do(ctx); err != nil {
				return nil, err
			}
			if turn == 0 {
				continue
			}
			m := &out[i]
			m.wall = append(m.wall, time.Since(began).Seconds())
			m.worker = append(m.worker, (ownCPU() - worker).Seconds())
			m.server = append(m.server, (b.serverCPU() - server).Seconds())
		}
	}
	return out, nil
}

// rates turns seconds for so many things into things a second.
func rates(things int, seconds []float64) []float64 {
	r := make([]float64, len(seconds))
	for i, s := range seconds {
		r[i] = float64(things) / s
	}
	return r
}

// each multiplies every value.
func each(values []float64, by float64) []float64 {
	r := make([]float64, len(values))
	for i, v := range values {
		r[i] = v * by
	}
	return r
}
