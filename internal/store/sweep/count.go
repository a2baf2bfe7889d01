package sweep

import (
	"context"
	"fmt"

	"redrive/internal/retention"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// overCount removes the oldest of our own dead letters that are more than there may be, up
// to the last that was announced.
func (p *pass) overCount(ctx context.Context) error {
	if p.limits.Count <= 0 {
		return nil
	}

	last, err := noticeOf(p.reader.In(ctx))
	if err != nil || last == (place{}) {
		return err
	}

	for {
		removed, err := db.Write(ctx, p.writer, heavyStep, p.removeOverCount)
		if err != nil {
			return fmt.Errorf("%s: %w", retention.OverCount, err)
		}

		if len(removed) == 0 {
			return nil
		}

		p.count(removed)
	}
}

// removeOverCount removes the next few.
func (p *pass) removeOverCount(t *db.Tx) (parts, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE ` + ownDeadLetter + ` AND ` + notHeld + ` AND ` + notNewest + `
		AND (changed_at, seq) <= ($1, $2) ORDER BY changed_at, seq LIMIT $3 + 0`

	most := min(p.counters.OwnDeadLetters(t)-p.limits.Count, dueChunk)
	if most <= 0 {
		return nil, nil
	}

	last, err := noticeOf(t)
	if err != nil || last == (place{}) {
		return nil, err
	}

	jobs, err := p.policies.Jobs(t, query, last.at, last.seq, most)
	if err != nil {
		return nil, err
	}

	return p.remove(t, retention.OverCount, jobs)
}
