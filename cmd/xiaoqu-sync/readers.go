package main

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror"
	"github.com/xiaoqu-sync/xiaoqu-sync/mirror/views"
)

// columnOf is a configured column as the views take it.
func columnOf(c config.Column) views.Column {
	return views.Column{Name: c.Name, Path: c.Path, Type: views.Type(c.Type), Index: c.Index, Ref: c.Ref}
}

func checkColumn(c config.Column) error { return columnOf(c).Check() }

// definition is what a resource's views are made from.
func (a *app) definition(resource string) views.Definition {
	r := a.config.Resources[resource]
	d := views.Definition{Columns: []views.Column{}, Masked: r.Masked, Zone: a.config.TimeZone.String()}
	for _, c := range r.Columns {
		d.Columns = append(d.Columns, columnOf(c))
	}
	return d
}

// readers brings the views of all resources, and then their indexes, to the
// configuration. It returns whose views were made, or in a dry run would be.
func (a *app) readers(ctx context.Context, dryRun bool) (made []string, err error) {
	made = []string{}
	names, err := a.spokenOf(ctx)
	if err != nil {
		return made, err
	}
	for _, r := range names {
		changed, err := a.mirror.Views(ctx, r, a.definition(r), dryRun)
		var e *mirror.Error
		if dryRun && errors.As(err, &e) && e.Kind == mirror.KindSchema {
			changed, err = true, nil // there is nothing yet to compare with
		}
		if err != nil {
			return made, err
		}
		if changed {
			made = append(made, r)
		}
	}
	for _, r := range names {
		if dryRun {
			break
		}
		if err := a.mirror.Indexes(ctx, r, a.definition(r)); err != nil {
			return made, err
		}
	}
	return made, nil
}

// spokenOf are the resources whose views the configuration speaks of. A run without
// a file says nothing of columns and masks: views that have some stay as they are, for
// readers and their rights hang on them.
func (a *app) spokenOf(ctx context.Context) ([]string, error) {
	names := a.config.Names()
	if a.program.configPath != "" {
		return names, nil
	}
	var spoken, kept []string
	for _, r := range names {
		declared, err := a.mirror.Declared(ctx, r)
		switch {
		case isSchema(err): // a dry run before the first migration
			spoken = append(spoken, r)
		case err != nil:
			return nil, err
		case declared:
			kept = append(kept, r)
		default:
			spoken = append(spoken, r)
		}
	}
	if len(kept) > 0 {
		a.log.Warn("no configuration file was given (--config): the readers' views keep their typed columns and masks", zap.Strings("resources", kept))
	}
	return spoken, nil
}

// offerViews is readers for a verb that can do without: what readers see beside
// the tables never keeps the mirror from being kept.
func (a *app) offerViews(ctx context.Context) {
	made, err := a.readers(ctx, !a.config.Database.AutoMigrate)
	switch {
	case err != nil:
		a.log.Warn("the readers' views and indexes are not those of the configuration; `migrate` says more", zap.Error(err))
	case len(made) > 0 && !a.config.Database.AutoMigrate:
		a.log.Warn("the readers' views are of another configuration; run `xiaoqu-sync migrate`", zap.Strings("resources", made))
	case len(made) > 0:
		a.log.Info("the readers' views were made from the configuration", zap.Strings("resources", made))
	}
}
