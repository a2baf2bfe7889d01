package config

import (
	"time"

	"redrive/internal/retention"
)

const (
	day          = 24 * time.Hour
	defaultTrash = 7 * day // of a job that a person discarded
)

// defaultAges are how long jobs are kept when the file says nothing. Dead letters
// follow the Open Job Spec.
func defaultAges() retention.Ages {
	return retention.Ages{
		retention.Completed: 7 * day, retention.Cancelled: 30 * day, retention.Discarded: 30 * day, retention.DeadLetters: 180 * day,
	}
}

// Retention says how long jobs are kept after they ended.
func (c *Config) Retention() retention.Limits {
	c = c.now()
	return c.retention
}

// readRetention reads the section retention: how long jobs are kept after they
// ended, and how many dead letters.
func (c *Config) readRetention(v value) error {
	return v.fields(c.retentionFields(c.retention.Ages, "dead_letter.retention.age", "dead_letter.retention.count"))
}

// readDeadLetter reads the section dead_letter, where the retention of dead letters
// used to be written.
func (c *Config) readDeadLetter(v value) error {
	fields := c.retentionFields(c.retention.Ages, "retention.dead_letters", "retention.max_dead_letters")
	return v.fields(map[string]func(value) error{"retention": func(v value) error {
		return v.fields(map[string]func(value) error{"age": fields["dead_letters"], "count": fields["max_dead_letters"]})
	}})
}

// retentionFields read what holds for all jobs. The places of dead letters are
// where else their bounds could be written.
func (c *Config) retentionFields(ages retention.Ages, otherAge, otherCount string) map[string]func(value) error {
	fields := ageFields(ages)
	for name, read := range fields {
		fields[name] = func(v value) error {
			c.retention.Said[retention.Kind(name)] = true
			return read(v)
		}
	}

	fields["dead_letters"] = c.once(otherAge, fields["dead_letters"])
	fields["max_dead_letters"] = c.once(otherCount, into(&c.retention.Count, func(v value) (int64, error) {
		n, err := v.integer()
		if err == nil && n < 1 {
			err = v.wrong("%d is less than 1; leave the field out to keep any number of dead letters", n)
		}

		return int64(n), err
	}))

	return fields
}

// once makes a reader that refuses what was written elsewhere too.
func (c *Config) once(elsewhere string, read func(value) error) func(value) error {
	return func(v value) error {
		if _, ok := c.file.lines[elsewhere]; ok {
			return v.wrong("is also set as %s; remove one of them", elsewhere)
		}
		return read(v)
	}
}

// ageFields read how long jobs are kept, by how they ended.
func ageFields(ages retention.Ages) map[string]func(value) error {
	fields := map[string]func(value) error{}
	for _, kind := range retention.WithAge() {
		fields[string(kind)] = func(v value) (err error) {
			ages[kind], err = ageOrNone(v)
			return err
		}
	}

	return fields
}

// readAges reads how long the jobs of one queue or type are kept.
func readAges(v value) (retention.Ages, error) {
	ages := retention.Ages{}
	return ages, v.fields(ageFields(ages))
}

// readTrash reads the section trash: how long discarded jobs can be restored.
func (c *Config) readTrash(v value) error {
	return v.fields(map[string]func(value) error{"age": into(&c.retention.Trash, age)})
}

// age reads how long something is kept. Retention looks once a minute.
func age(v value) (time.Duration, error) {
	d, err := v.longerThanZero("30d")
	if err == nil && d < time.Minute {
		err = v.wrong("%v is shorter than a minute", d)
	}

	return d, err
}

// ageOrNone is age, where 0 keeps forever.
func ageOrNone(v value) (time.Duration, error) {
	switch v.sign() {
	case 0:
		return 0, nil
	case -1:
		return 0, v.wrong("must be positive, or 0 to keep jobs forever")
	}

	return age(v)
}
