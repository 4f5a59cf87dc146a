// Package figures holds what a run of the benchmarks measured, prints it, draws
// it, and says what has become worse since another run. It measures nothing.
package figures
