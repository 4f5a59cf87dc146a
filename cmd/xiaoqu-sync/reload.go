package main

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/sync"
)

// reload takes over what of a changed configuration can change while runs are
// at work, and names the rest. A configuration with a mistake changes nothing.
func (d *daemon) reload(ctx context.Context) {
	if d.contact.Load() {
		d.notify.reloading()
		defer d.notify.ready()
	}
	log := d.app.log
	cfg, err := d.app.program.load(config.Input{})
	if err != nil {
		log.Error("the configuration is refused; the one in force stays", zap.Error(err))
		return
	}
	plan, err := d.planOf(cfg)
	if err != nil {
		log.Error("the configuration is refused; the one in force stays", zap.Error(err))
		return
	}
	d.table.Replace(ctx, plan)
	d.app.level.SetLevel(d.app.program.level(cfg))
	log.Info("the configuration was read again", zap.String("log_level", d.app.level.String()))
	if later := needsRestart(d.app.config, cfg); len(later) > 0 {
		log.Warn("these settings changed and wait for a restart", zap.Strings("settings", later))
	}
}

// planOf is the plan by cfg of the resources that this process has. A resource
// that cfg no longer names keeps its schedule until the restart.
func (d *daemon) planOf(cfg *config.Config) (sync.Plan, error) {
	schedules := map[string]string{}
	for name, r := range d.app.config.Resources {
		if now, stays := cfg.Resources[name]; stays {
			r = now
		}
		schedules[name] = r.Schedule
	}
	return sync.NewPlan(schedules, d.app.config.TimeZone, cfg.ScheduleJitter)
}

// needsRestart names the settings whose new values are not in force.
func needsRestart(old, now *config.Config) []string {
	values := map[string]string{}
	for _, s := range old.Effective() {
		values[s.Name] = s.Value
	}
	var names []string
	for _, s := range now.Effective() {
		switch {
		case s.Name == "log.level", s.Name == "schedule_jitter":
		case strings.HasPrefix(s.Name, "resources."): // looked at below, as a whole
		case s.Name == "database.url" && old.Database.URL != now.Database.URL, values[s.Name] != s.Value:
			names = append(names, s.Name)
		}
	}
	for name, is := range now.Resources {
		was, known := old.Resources[name]
		was.Schedule = is.Schedule
		if known && !reflect.DeepEqual(was, is) {
			names = append(names, "resources."+name)
		}
	}
	slices.Sort(names)
	return names
}
