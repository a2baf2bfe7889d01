package operations

import (
	"context"
	"database/sql"

	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// groupOperations is how many operations a group shows.
const groupOperations = 10

// OfGroup returns the newest operations whose filter names the error group.
func (b *Book) OfGroup(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	const query = `SELECT ` + columns + ` FROM operations WHERE (' ' || filter || ' ') LIKE $1 ESCAPE '\' ORDER BY id DESC LIMIT $2 + 0`
	return list(b.reader.In(ctx), query, "% group:"+db.Like(fingerprint)+" %", groupOperations)
}

// maxActs bounds what is read of the operations of one job, the newest first.
const maxActs = 200

// ActsOn is what operations did to one job, the newest first.
func ActsOn(src db.Source, seq int64) ([]operation.Act, error) {
	const query = `SELECT i.operation_id, o.kind, i.run, i.at, o.started_by FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
		WHERE i.job_seq = $1 AND i.state = 'done' ORDER BY i.operation_id DESC LIMIT $2 + 0`
	var all []operation.Act
	err := src.Query(query, func(rows *sql.Rows) error {
		var a operation.Act
		var at int64
		err := rows.Scan(&a.Operation, &a.Kind, &a.Run, &at, &a.By)
		a.At = db.FromMicros(at)
		all = append(all, a)
		return err
	}, seq, maxActs)
	return all, err
}
