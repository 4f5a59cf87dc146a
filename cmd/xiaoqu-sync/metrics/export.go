package metrics

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	scrapesAtOnce = 4
	scrapeTime    = 9 * time.Second
)

// Handler answers scrapes, with the figures of the Go runtime and the process
// beside our own.
func (r *Recorder) Handler() http.Handler {
	runtime := prometheus.NewRegistry()
	runtime.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(prometheus.Gatherers{r.registry, runtime}, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTime,
	})
}

// WriteTextfile writes the figures for node_exporter's textfile collector, which
// reads files *.prom: under another name first, then renamed, so that nobody
// reads half of it. The runtime's figures are left out: the exporter has such
// names of its own, and refuses a file that repeats them.
func (r *Recorder) WriteTextfile(path string) error {
	if err := prometheus.WriteToTextfile(path, r.registry); err != nil {
		return fmt.Errorf("metrics: write %s: %w", path, err)
	}
	return nil
}
