package main

import (
	"fmt"

	"github.com/xiaoqu-sync/xiaoqu-sync/config"
)

// minSigningKey is the shortest key that a door takes, in bytes. A shorter one can
// be guessed.
const minSigningKey = 16

// doorSecrets fetches the doors' secrets, and gathers what is wrong with them.
type doorSecrets struct {
	program  *program
	problems config.Problems
}

// fetch reads a secret that must be there: from the file when one is set, else from
// the variable.
func (d *doorSecrets) fetch(setting, variable, file string) []byte {
	value, err := d.program.fetchSecret(variable, file)
	if err != nil {
		d.problems = append(d.problems, config.Problem{Field: setting, Message: err.Error(), Hint: "without it the door cannot be opened"})
		return nil
	}
	d.program.redactor.Add(value)
	return []byte(value)
}

// key is fetch for what signs.
func (d *doorSecrets) key(setting, variable, file string) []byte {
	k := d.fetch(setting, variable, file)
	if k != nil && len(k) < minSigningKey {
		from := "in " + variable
		if file != "" {
			from = "in " + file
		}
		d.problems = append(d.problems, config.Problem{
			Field: setting, Message: fmt.Sprintf("the key %s is shorter than %d bytes", from, minSigningKey), Hint: "take the one that the platform made",
		})
	}
	return k
}

// optional is key for what need not be there; nil when it is not.
func (d *doorSecrets) optional(setting, variable, file string) []byte {
	if value, _ := d.program.lookup(variable); file == "" && value == "" {
		return nil
	}
	return d.key(setting, variable, file)
}
